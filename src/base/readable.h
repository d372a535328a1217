// Something with a descriptor that a loop watches beside its own sockets.
#pragma once

namespace pawl {

class Readable {
 public:
  virtual ~Readable() = default;
  // Readable whenever run() has something to do.
  [[nodiscard]] virtual int fd() const = 0;
  // Does it, without waiting.
  virtual void run() = 0;
};

}  // namespace pawl
