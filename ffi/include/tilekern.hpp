// tilekern for C++17: typed tensors, a workspace, and statuses as exceptions, over tilekern.h.
//
//   std::array<float, 4> x, y;
//   tilekern::Tensor input(x.data(), {2, 2});
//   tilekern::Tensor output(y.data(), {2, 2});
//   tk_rms_norm_args args = TK_RMS_NORM_ARGS_INIT;
//   args.input = input;
//   ...
//   tilekern::Workspace workspace;
//   tilekern::run(tk_rms_norm_workspace_size, tk_rms_norm, nullptr, args, workspace);
#ifndef TILEKERN_HPP
#define TILEKERN_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "tilekern.h"

namespace tilekern {

/// IEEE half precision, by its bits.
struct f16 {
  std::uint16_t bits;
};

/// bfloat16, by its bits.
struct bf16 {
  std::uint16_t bits;
};

/// The dtype of a C++ type.
template <class T>
constexpr std::int32_t dtype() {
  if constexpr (std::is_same_v<T, float>) return TK_F32;
  else if constexpr (std::is_same_v<T, f16>) return TK_F16;
  else if constexpr (std::is_same_v<T, bf16>) return TK_BF16;
  else if constexpr (std::is_same_v<T, double>) return TK_F64;
  else if constexpr (std::is_same_v<T, bool>) return TK_BOOL;
  else if constexpr (std::is_same_v<T, std::int8_t>) return TK_I8;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return TK_U8;
  else if constexpr (std::is_same_v<T, std::int32_t>) return TK_I32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return TK_I64;
  else {
    static_assert(std::is_same_v<T, std::uint64_t>, "no dtype for this type");
    return TK_U64;
  }
}

/// A shape, with optional strides in elements, over memory that stays the caller's. A `const T` makes an input. Where a
/// `const tk_tensor *` is wanted it stands for one, which lives as long as this does.
template <class T, std::size_t R>
class Tensor {
 public:
  using Sizes = std::array<std::int64_t, R>;

  Tensor(T *data, const Sizes &shape) : Tensor(data, shape, Sizes{}) { view_.strides = nullptr; }

  Tensor(T *data, const Sizes &shape, const Sizes &strides) : shape_(shape), strides_(strides) {
    view_.data = const_cast<std::remove_const_t<T> *>(data);
    view_.shape = shape_.data();
    view_.strides = strides_.data();
    view_.rank = static_cast<std::int32_t>(R);
    view_.dtype = dtype<std::remove_const_t<T>>();
  }

  // The view points into this object.
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;

  operator const tk_tensor *() const & { return &view_; }
  operator const tk_tensor *() const && = delete;

 private:
  Sizes shape_, strides_;
  tk_tensor view_;
};

template <class T, std::size_t R>
Tensor(T *, const std::int64_t (&)[R]) -> Tensor<T, R>;
template <class T, std::size_t R>
Tensor(T *, const std::int64_t (&)[R], const std::int64_t (&)[R]) -> Tensor<T, R>;

/// A call that failed.
class Error : public std::runtime_error {
 public:
  Error(std::int32_t status, const tk_context *context)
      : std::runtime_error(context != nullptr && context->message[0] != '\0' ? context->message : tk_status_string(status)),
        status_(status) {}

  std::int32_t status() const { return status_; }

 private:
  std::int32_t status_;
};

/// Throws for a status other than 0. The context is that of the call, and none behind a function that takes none: it would say what
/// another call left in it.
inline void check(std::int32_t status, const tk_context *context = nullptr) {
  if (status != TK_STATUS_SUCCESS) throw Error(status, context);
}

/// Memory that grows to what was asked for last, and is kept for the next call.
class Workspace {
 public:
  Workspace() = default;
  Workspace(Workspace &&other) noexcept : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Workspace &operator=(Workspace &&other) noexcept {
    memory_ = std::move(other.memory_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  /// At least `bytes`, aligned to 64.
  void *reserve(std::size_t bytes) {
    if (bytes > SIZE_MAX - 63) throw std::bad_alloc();
    if (bytes > bytes_) {
      bytes_ = 0;
      memory_.reset(new unsigned char[bytes + 63]);
      bytes_ = bytes;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    return memory_.get() + (64 - address % 64) % 64;
  }

 private:
  std::unique_ptr<unsigned char[]> memory_;
  std::size_t bytes_ = 0;
};

/// Asks for the workspace, and runs in it. A context's `parallel_for` must not throw.
template <class Args>
void run(std::int32_t (*query)(tk_context *, const Args *, std::size_t *),
         std::int32_t (*operation)(tk_context *, const Args *, void *, std::size_t), tk_context *context, const Args &args,
         Workspace &workspace) {
  std::size_t bytes = 0;
  // A call that is refused before it knows the context leaves the sentence of another.
  if (context != nullptr) context->message[0] = '\0';
  check(query(context, &args, &bytes), context);
  check(operation(context, &args, workspace.reserve(bytes), bytes), context);
}

}  // namespace tilekern

#endif  // TILEKERN_HPP
