// Chooses the next token of every sequence of a batch. How to compile and link: ffi/README.md.
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>

#include "tilekern.hpp"

int main() {
  constexpr std::int64_t batch = 3, vocabulary = 32000;

  // Of each sequence its own: the first is greedy, the second takes of the 40 best, the third of the 90 % and at least a tenth of the
  // best.
  std::array<std::int32_t, batch> top_k{1, 40, 0};
  std::array<float, batch> top_p{1.0f, 1.0f, 0.9f}, min_p{0.0f, 0.0f, 0.1f};
  std::array<std::int64_t, 2 * batch> seeds{1, 0, 2, 0, 3, 0};  // (seed, offset); the next step takes an offset 4 higher
  std::array<std::int64_t, batch> chosen{};

  // A model's logits, in place of which here is something with a peak.
  std::vector<float> logits(batch * vocabulary);
  for (std::int64_t b = 0; b < batch; b++)
    for (std::int64_t v = 0; v < vocabulary; v++)
      logits[b * vocabulary + v] = 10.0f * std::exp(-1e-4f * std::abs(static_cast<float>(v - 1000 * (b + 1))));

  const tilekern::Tensor logits_tensor(logits.data(), {batch, vocabulary});
  const tilekern::Tensor top_k_tensor(top_k.data(), {batch});
  const tilekern::Tensor top_p_tensor(top_p.data(), {batch});
  const tilekern::Tensor min_p_tensor(min_p.data(), {batch});
  const tilekern::Tensor seeds_tensor(seeds.data(), {batch, 2});
  const tilekern::Tensor chosen_tensor(chosen.data(), {batch});

  tk_top_k_top_p_sample_args args = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  args.logits = logits_tensor;
  args.top_k = top_k_tensor;
  args.top_p = top_p_tensor;
  args.min_ps = min_p_tensor;
  args.q = seeds_tensor;
  args.post_sample = TK_POST_SAMPLE_MULTINOMIAL;
  args.logits_select_idx = chosen_tensor;

  tk_context context = TK_CONTEXT_INIT;
  tilekern::Workspace workspace;  // kept between calls: only the first allocates
  try {
    tilekern::run(tk_top_k_top_p_sample_workspace_size, tk_top_k_top_p_sample, &context, args, workspace);
  } catch (const tilekern::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  for (std::int64_t b = 0; b < batch; b++) std::cout << b << ": token " << chosen[b] << '\n';
  return 0;
}
