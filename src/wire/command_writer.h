// Commands into bytes, for the client: the inverse of command_decoder and request.
//
//   std::string out;
//   wire::append_command(out, {"RENEW", lease_text});
//   wire::append_acquire(out, spec);
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/lease_terms.h"
#include "base/types.h"

namespace pawl::wire {

void append_command(std::string& out, std::span<const std::string_view> args);
void append_command(std::string& out, std::initializer_list<std::string_view> args);

// Whatever is at its default is left out; parsing gives back an equal spec.
void append_acquire(std::string& out, const AcquireSpec& spec);
void append_renew(std::string& out, LeaseId lease);
// RENEW … ASKS: answered with what somebody has asked of the holder, see RenewalReply.
void append_renew_asks(std::string& out, LeaseId lease);
// MRENEW ASKS, see RenewedItem.
void append_mrenew(std::string& out, std::span<const LeaseId> leases);
void append_release(std::string& out, LeaseId lease);
void append_cancel(std::string& out, std::string_view request);

}  // namespace pawl::wire
