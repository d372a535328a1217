// Calls to an etcd that block until they are answered or their time is over, over etcd/driver.h.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "etcd/driver.h"
#include "guard/etcd/calls.h"
#include "pawl/etcd.h"
#include "pawl/result.h"

namespace pawl::guard {

// Used by one thread at a time.
class EtcdConnection {
 public:
  // Reads the files for TLS and looks the hosts up; it does not wait until etcd answers. kInvalid:
  // an option is wrong.
  [[nodiscard]] static Result<std::unique_ptr<EtcdConnection>> open(const EtcdOptions& options);

  // kUnavailable: nothing happened. kUnknown: it was sent, and may have happened. kDenied,
  // kInvalid: etcd has refused it, and nothing happened.
  [[nodiscard]] Result<EtcdTransacted> transact(const etcd::TxnRequest& request,
                                                EtcdSending sending);
  // All keys of the range, however many.
  [[nodiscard]] Result<std::vector<etcd::KeyValue>> range(const std::string& key,
                                                          const std::string& range_end);
  // A call of any service that changes nothing. `status` of the answer says how it ended;
  // kUnavailable: there was none.
  [[nodiscard]] Result<etcd::AskDone> ask(const std::string& path, std::string request);

  // What is known of the endpoints; waits until all have answered, or a second is over.
  [[nodiscard]] std::vector<etcd::EndpointView> endpoints();
  // Whether the last call found etcd.
  [[nodiscard]] bool is_connected() const { return connected_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] EtcdTransact as_function();

 private:
  EtcdConnection(std::unique_ptr<etcd::Driver> driver, std::string name,
                 std::chrono::milliseconds time_limit);
  // Drives the sockets until `done()` or the end of the time; whether it is done.
  template <class Done>
  bool run_until(std::chrono::milliseconds limit, const Done& done);
  [[nodiscard]] bool is_refused() const;
  [[nodiscard]] Error no_answer(bool sent) const;

  const std::unique_ptr<etcd::Driver> driver_;
  const std::string name_;
  const std::chrono::milliseconds time_limit_;
  bool connected_ = false;
  std::vector<etcd::Event> events_;
  std::vector<etcd::AskDone> asked_;
  std::string trouble_;  // the last
};

}  // namespace pawl::guard
