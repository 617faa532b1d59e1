// tilekern.h and tilekern.hpp as C++17.
#include "tilekern.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
      std::exit(1);                                                         \
    }                                                                       \
  } while (0)

int main() {
  const std::vector<float> x{3, 4, 6, 8}, gamma{1, 1};
  std::vector<std::int8_t> y(4);
  std::vector<float> scale(2);
  const tilekern::Tensor input(x.data(), {2, 2});
  const tilekern::Tensor weights(gamma.data(), {2});
  const tilekern::Tensor output(y.data(), {2, 2});
  const tilekern::Tensor output_scale(scale.data(), {2});
  tk_context context = TK_CONTEXT_INIT;
  tk_rms_norm_quant_args args = TK_RMS_NORM_QUANT_ARGS_INIT;
  args.input = input;
  args.gamma = weights;
  args.eps = 0;
  args.output = output;
  args.output_scale = output_scale;
  tilekern::Workspace workspace;
  tilekern::run(tk_rms_norm_quant_workspace_size, tk_rms_norm_quant, &context, args, workspace);
  CHECK(y[0] == 95 && y[1] == 127 && y[2] == 95 && y[3] == 127);
  CHECK(std::fabs(scale[0] * 127 - 1.1313708f) < 1e-5f);

  // The columns of x as rows.
  std::vector<float> z(4);
  const tilekern::Tensor columns(x.data(), {2, 2}, {1, 2});
  const tilekern::Tensor plain(z.data(), {2, 2});
  tk_rms_norm_args norm = TK_RMS_NORM_ARGS_INIT;
  norm.input = columns;
  norm.gamma = weights;
  norm.output = plain;
  tilekern::run(tk_rms_norm_workspace_size, tk_rms_norm, nullptr, norm, workspace);
  CHECK(std::fabs(z[0] - 3 / std::sqrt(22.5f)) < 1e-5f && std::fabs(z[1] - 6 / std::sqrt(22.5f)) < 1e-5f);

  const tilekern::Tensor halves(reinterpret_cast<const tilekern::bf16 *>(x.data()), {2});
  args.gamma = halves;
  try {
    tilekern::run(tk_rms_norm_quant_workspace_size, tk_rms_norm_quant, &context, args, workspace);
    CHECK(false);
  } catch (const tilekern::Error &error) {
    CHECK(error.status() == TK_STATUS_INVALID);
    CHECK(std::string(error.what()) == "gamma: expected f32, found bf16 (161002)");
  }

  // A sentence is that of the call, also where the call does not get to the context.
  args.gamma = weights;
  context.struct_size = 1;
  try {
    tilekern::run(tk_rms_norm_quant_workspace_size, tk_rms_norm_quant, &context, args, workspace);
    CHECK(false);
  } catch (const tilekern::Error &error) {
    CHECK(std::string(error.what()) == tk_status_string(error.status()));
  }
  context.struct_size = sizeof(tk_context);

  // A workspace that was moved from begins anew; what cannot be had is an exception.
  tilekern::Workspace other = std::move(workspace);
  CHECK(workspace.reserve(1) != nullptr && other.reserve(1) != nullptr && workspace.reserve(1) != other.reserve(1));
  workspace = std::move(other);
  CHECK(other.reserve(1) != nullptr);
  try {
    workspace.reserve(SIZE_MAX);
    CHECK(false);
  } catch (const std::bad_alloc &) {
  }
  return 0;
}
