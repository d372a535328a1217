// What keeps web pages out. A page from anywhere can make a visitor's browser send requests to a
// service on the visitor's own machine; pawld trusts that machine. So:
//
// - `Host` must be a loopback name or address, or one that is configured. A page whose name was
//   made to point at 127.0.0.1
//   (DNS rebinding) still says its own name there. Health probes are exempt (Route::any_host).
// - `Origin`, when sent, must be this very service. Browsers send it with every POST and every
//   request of a script.
// - What a browser itself marks as made by another site (`Sec-Fetch-Site`) is refused, unless
//   someone followed a link.
// - A body must be `application/json`, which no HTML form can send, and which a script may send
//   elsewhere only after a
//   preflight. OPTIONS is not served, so preflights fail. The POSTs that take no body need the header Pawl-Lease, which
//   forces a preflight as well.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "http/problem.h"

namespace pawl::http {

// Each answers what is wrong, or nothing when the request may go on.
// `hosts`: names beside the loopback ones, without port.
[[nodiscard]] std::optional<Problem> refuse_host(const Request& request,
                                                 const std::vector<std::string>& hosts);
[[nodiscard]] std::optional<Problem> refuse_origin(const Request& request);
[[nodiscard]] std::optional<Problem> refuse_media_type(const Request& request);

// "localhost:7296" -> "localhost"; "[::1]:7296" -> "[::1]".
[[nodiscard]] std::string_view without_port(std::string_view host);
[[nodiscard]] bool is_loopback_name(std::string_view host);

}  // namespace pawl::http
