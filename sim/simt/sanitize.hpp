// What the executor tells the sanitizers. Every function does nothing in a build without them.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INDEXPOOL_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define INDEXPOOL_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define INDEXPOOL_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define INDEXPOOL_TSAN 1
#endif

#if defined(INDEXPOOL_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(INDEXPOOL_TSAN)
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace indexpool::sim::simt {

#if defined(INDEXPOOL_ASAN) || defined(INDEXPOOL_TSAN)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// While one lives, the race detector does not look: the executor's own bookkeeping is shared by all
// fibers on purpose and must not hide or fake an ordering between CUDA threads.
struct QuietScope {
#if defined(INDEXPOOL_TSAN)
  QuietScope() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~QuietScope() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  QuietScope(const QuietScope&) = delete;
  QuietScope& operator=(const QuietScope&) = delete;
#else
  QuietScope() {}
#endif
};

// What the running fiber did so far happens before whatever follows an acquire of the same tag.
inline void publish([[maybe_unused]] char& tag) {
#if defined(INDEXPOOL_TSAN)
  __tsan_release(&tag);
#endif
}
inline void acquire([[maybe_unused]] char& tag) {
#if defined(INDEXPOOL_TSAN)
  __tsan_acquire(&tag);
#endif
}

inline void forbid_access([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(INDEXPOOL_ASAN)
  __asan_poison_memory_region(begin, bytes);
#endif
}
inline void allow_access([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(INDEXPOOL_ASAN)
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

}  // namespace indexpool::sim::simt
