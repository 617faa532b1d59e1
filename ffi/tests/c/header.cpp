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
  return 0;
}
