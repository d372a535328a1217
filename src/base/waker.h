// How one thread tells the loop of another that there is something for it.
//
//   store.wake_with(&loop);          // wake() when a batch or a backup has become complete
#pragma once

namespace pawl {

class Waker {
 public:
  virtual ~Waker() = default;
  // The loop takes a turn soon, also when it sleeps now. Several calls before that turn count as
  // one. Any thread may call it; it does not block.
  virtual void wake() = 0;
};

}  // namespace pawl
