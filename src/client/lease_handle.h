// What is behind a public Lease. Shared by client_public.cc, which makes it, and lease_public.cc,
// which is it.
#pragma once

#include <memory>

#include "client/driver.h"
#include "pawl/lease.h"

namespace pawl {

struct Lease::State {
  std::shared_ptr<client::Driver> driver;
  client::Grant grant;
  std::shared_ptr<client::Holder> holder;
  bool forgotten = false;  // by the driver; the owner's alone, unlike the rest

  [[nodiscard]] client::Standing look() const;
};

}  // namespace pawl
