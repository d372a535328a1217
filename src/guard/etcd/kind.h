// etcd as a kind of guard.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "guard/etcd/connection.h"
#include "guard/etcd/dsn.h"
#include "guard/etcd/policy.h"
#include "guard/kind.h"

namespace pawl::guard {

extern const Kind kEtcdKind;

// The forms of scratch resources: those of EtcdScope.
inline constexpr std::array<std::string_view, 3> kEtcdForms{"static", "row", "by"};
[[nodiscard]] Result<EtcdScope> parse_etcd_form(std::string_view text);

// The options that a DSN and the environment say.
[[nodiscard]] Result<EtcdOptions> to_etcd_options(const std::string& dsn);
// Opened, and etcd has answered.
[[nodiscard]] Result<std::shared_ptr<EtcdConnection>> connect_etcd(const std::string& dsn);

// Its parts.
[[nodiscard]] Result<std::unique_ptr<Administration>> open_etcd_administration(
    const std::string& dsn);
[[nodiscard]] Result<std::unique_ptr<Session>> open_etcd_session(const std::string& dsn,
                                                                 const SessionRequest& request);
[[nodiscard]] Result<std::unique_ptr<ScratchSpace>> open_etcd_scratch(const std::string& dsn,
                                                                      std::string_view form);

}  // namespace pawl::guard
