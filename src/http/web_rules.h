// The rules that keep web pages out. A page from anywhere can make a visitor's browser send
// requests to a service on the visitor's own machine, which pawld trusts. So:
//
// - `Host` must be a loopback name or address, or a configured one. A page whose name was made to
//   point to 127.0.0.1 (DNS rebinding) still sends its own name there. Health probes are exempt
//   (Route::any_host).
// - `Origin`, if sent, must be this very service. Browsers send it with every POST and every
//   request of a script.
// - A request that the browser itself marks as made by another site (`Sec-Fetch-Site`) is refused,
//   unless the user followed a link.
// - A body must be `application/json`. No HTML form can send that, and a script may send it to
//   another site only after a preflight. OPTIONS is not served, so preflights fail. The POSTs that
//   take no body need the header Pawl-Lease, which forces a preflight as well.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace pawl::http {

// Each returns what is wrong, or nothing if the request may proceed. `hosts` are the names allowed
// besides the loopback ones, without port.
[[nodiscard]] std::optional<Problem> refuse_host(const Request& request,
                                                 const std::vector<std::string>& hosts);
[[nodiscard]] std::optional<Problem> refuse_origin(const Request& request);
[[nodiscard]] std::optional<Problem> refuse_media_type(const Request& request);

// "localhost:7296" -> "localhost"; "[::1]:7296" -> "[::1]".
[[nodiscard]] std::string_view without_port(std::string_view host);
[[nodiscard]] bool is_loopback_name(std::string_view host);

}  // namespace pawl::http
