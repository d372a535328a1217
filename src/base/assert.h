// PAWL_ASSERT(condition): what must hold, checked in production too. A lock service that has
// contradicted itself must not answer another request, so a failure prints where and aborts.
#pragma once

namespace pawl {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace pawl

#define PAWL_ASSERT(condition)                       \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? void(0)                                     \
       : ::pawl::assertion_failed(#condition, __FILE__, __LINE__))
