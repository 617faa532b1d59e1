// tilekern: token sampling and the int8 LLaMA decoder, on the processor. Made by cbindgen from ffi/src; do not edit.
//
// Status: 0; 161001 a required pointer is NULL; 161002 a dtype, rank, shape, stride or range is wrong; 561002 a size is outside what
// the operator supports (the vocabulary of tk_top_k_top_p_sample, of its first version and of a decoding: 2^20), or the `q` of
// tk_top_k_top_p_sample has another shape;
// -1 workspace; -2 not supported here; -3 backend; -4 a `parallel_for` that was seen to break its promise, after which outputs are
// unspecified. Any other call that fails writes nothing but the message and the `backend_status` of its context (tk_model_encode also
// the count that it wants; an NPU that fails in the midst of its work may have written outputs); a success leaves both as they were.
//
// Every operation has a struct of arguments, which begins with its size and is initialised with TK_.._ARGS_INIT; a query, which says
// how much workspace a call needs; and a function that runs in it. Memory is the caller's, nothing is allocated (but what takes a -4
// back to the caller, and what loads CANN); up to 64 KiB of stack are used, by each thread of a pool too. A workspace is
// aligned to 64 bytes, at least as large as the query says, and of any content; it may be NULL when that is 0. No tensor of the call lies
// in it: that alone is not looked at. More work does not always need more: ask for each shape and dtype that will come, strides
// included, and keep the largest answer.
//
// The dtype T is f32, f16 or bf16, one for all T of a call. `?` marks tensors that may be NULL. What a comment begins
// with, before a colon, is the default; of several values the first. Formulas, limits and edge cases: `cargo doc -p tilekern`, by the
// same names. Inputs may have any strides from 0 on, but packed and NZ weights, which have no gaps; outputs overlap neither themselves
// nor another tensor (161002). What lies between the elements of an input is written by outputs of its call alone, as long as that runs.
#ifndef TILEKERN_H
#define TILEKERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// `backend`: this processor.
#define TK_BACKEND_HOST 0

/// `backend`: an Ascend NPU, through the CANN that is found. Every `data` and the workspace are addresses of the device, a call
/// enqueues into `stream`, and what it named stays until that is synchronised.
#define TK_BACKEND_ASCEND 1

/// `isa`: the best of this processor.
#define TK_ISA_BEST 0

/// `isa`: no instruction set in particular.
#define TK_ISA_PORTABLE 1

/// `isa`: AVX2, FMA, F16C, POPCNT, LZCNT, BMI1 and BMI2.
#define TK_ISA_AVX2 2

/// `isa`: AVX-512 F, BW, DQ and VL.
#define TK_ISA_AVX512 3

/// `isa`: AVX-512 with VNNI.
#define TK_ISA_AVX512VNNI 4

/// `isa`: NEON.
#define TK_ISA_NEON 5

/// `isa`: NEON with the dot product.
#define TK_ISA_NEONDOT 6

/// `isa`: AVX-512 VNNI with AMX.
#define TK_ISA_AVX512AMX 7

/// `group_list_type`: the end of each group.
#define TK_GROUP_LIST_ENDS 0

/// `group_list_type`: the number of rows of each group.
#define TK_GROUP_LIST_COUNTS 1

/// `weight_format`: plain, `[E,K,N]` or `[K,N]`.
#define TK_FORMAT_ND 2

/// `weight_format`: the blocks of ACL, `[E,N/32,K/16,16,32]` or `[N/32,K/16,16,32]`; of i4 `[E,N/64,K/16,16,64]`.
#define TK_FORMAT_NZ 29

/// `weight_format`: packed by this library, i8[bytes].
#define TK_FORMAT_PACKED 1000

/// `post_sample`: the largest logit; q is not looked at.
#define TK_POST_SAMPLE_NONE 0

/// `post_sample`: the largest probability divided by the noise in q; the largest logit without q.
#define TK_POST_SAMPLE_Q 1

/// `post_sample`: the same with noise drawn from (seed, offset) pairs, of q or else of generator; the largest logit without both. A token
/// more than 16 below the best logit is drawn too rarely, one more than 19.77 below never.
#define TK_POST_SAMPLE_MULTINOMIAL 2

/// Done.
#define TK_STATUS_SUCCESS 0

/// A required pointer is NULL.
#define TK_STATUS_NULL 161001

/// A dtype, rank, shape, stride or range is wrong.
#define TK_STATUS_INVALID 161002

/// A size is outside what the operator supports.
#define TK_STATUS_TILING 561002

/// The workspace is too small or misaligned.
#define TK_STATUS_WORKSPACE -1

/// Not supported on this processor or backend.
#define TK_STATUS_UNSUPPORTED -2

/// The backend is missing or failed.
#define TK_STATUS_BACKEND -3

/// A bug of this library, or of the caller's parallel_for.
#define TK_STATUS_INTERNAL -4

/// `dtype`: float.
#define TK_F32 0

/// `dtype`: IEEE half precision.
#define TK_F16 1

/// `dtype`: int8_t.
#define TK_I8 2

/// `dtype`: int32_t.
#define TK_I32 3

/// `dtype`: uint8_t.
#define TK_U8 4

/// `dtype`: int64_t.
#define TK_I64 9

/// `dtype`: uint64_t.
#define TK_U64 10

/// `dtype`: double.
#define TK_F64 11

/// `dtype`: one byte, 0 is false.
#define TK_BOOL 12

/// `dtype`: bfloat16.
#define TK_BF16 27

/// `dtype`: 4-bit integers, two to a byte, the low half first.
#define TK_I4 29

/// A batch of rows that a model continues. It lies in the memory that it was made in; used by one thread at a time.
typedef struct tk_decoding tk_decoding;

/// A model. It lies in the memory that it was loaded into, is read-only, and may serve any number of decodings and threads.
typedef struct tk_model tk_model;

/// What a call runs on. NULL instead of one means: this processor, its best instruction set, the calling thread. The caller's own;
/// used by one thread at a time.
typedef struct tk_context {
  /// sizeof(tk_context)
  size_t struct_size;
  /// TK_BACKEND_HOST or TK_BACKEND_ASCEND
  int32_t backend;
  /// TK_ISA_BEST and so on. One that the processor lacks: -2. Every one gives the same bits.
  int32_t isa;
  /// Ascend: an aclrtStream
  void *stream;
  /// Calls task(arg, index, worker) once for each index < tasks, on any threads, and returns after the last has returned. Tasks
  /// may run at the same time, but never two with the same worker; worker < parallel_threads. What a task wrote, later tasks of its
  /// worker and the caller see, as a lock, a join or an acquire load does it. A task never calls parallel_for.
  /// An exception or a longjmp out of it ends the process.
  void (*parallel_for)(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg);
  /// The first argument of parallel_for
  void *parallel_user;
  /// How many workers parallel_for names; 0: everything on the calling thread. With more a parallel_for of NULL is 161001.
  size_t parallel_threads;
  /// The ACL code behind -3
  int32_t backend_status;
  /// Filled when a call fails: the argument, what was expected, what was found.
  char message[256];
} tk_context;

/// What a decoding is made for.
typedef struct tk_decoding_config {
  /// sizeof(tk_decoding_config)
  size_t struct_size;
  /// 1: rows
  int64_t batch;
  /// The longest prompt, in tokens
  int64_t max_prompt;
  /// The most tokens that a row generates, unless the context of the model ends before
  int64_t max_new;
  /// TK_F32: what the caches hold; or TK_F16 or TK_BF16.
  int32_t kv_dtype;
  /// The token that ends a row; -1: none.
  int32_t end_id;
} tk_decoding_config;

/// How a row chooses its tokens.
typedef struct tk_row_sampling {
  /// sizeof(tk_row_sampling)
  size_t struct_size;
  /// 1: divides the logits; 0 takes the largest.
  double temperature;
  /// 0: off; the k largest logits.
  int64_t top_k;
  /// 1: off, as everything outside (0,1); the smallest set of that probability.
  double top_p;
  /// 0: off, as everything below; tokens with that fraction of the largest probability.
  double min_p;
  /// 0: what the draws follow from, together with the place in the row.
  uint64_t seed;
} tk_row_sampling;

/// Somebody's memory, with a shape. It and all it points to stay the caller's and need not outlive the call.
typedef struct tk_tensor {
  /// The first element, aligned to its dtype. A workspace query does not touch it, and takes NULL.
  void *data;
  /// `rank` sizes; may be NULL when rank is 0.
  const int64_t *shape;
  /// `rank` strides in elements, at least 0 (0 broadcasts, in an input); NULL: row-major without gaps.
  const int64_t *strides;
  /// At most 5.
  int32_t rank;
  /// TK_F32 and so on.
  int32_t dtype;
} tk_tensor;

/// A logits processor: a grammar, penalties, biases. `logits` are the `count` logits of `row` as the model gave them, and the row
/// chooses from what is left there; -INFINITY and NaN bar a token. It returns, and calls nothing with this decoding.
typedef void (*tk_edit_logits)(void *user, int64_t row, float *logits, size_t count);

/// How a model is loaded.
typedef struct tk_model_options {
  /// sizeof(tk_model_options)
  size_t struct_size;
  /// TK_F32: the activations; or TK_F16 or TK_BF16.
  int32_t dtype;
  /// TK_I8: the product that gives the logits; or TK_F32, not quantised: a matrix of its own takes up to four times the memory.
  int32_t head_dtype;
  /// ? A llama2.c tokenizer, for checkpoints that carry none; it may be freed after the load.
  const void *tokenizer;
  /// Its length.
  size_t tokenizer_bytes;
} tk_model_options;

/// Makes every logit -inf that top-k or top-p drops, and copies the others. T is f32, f16 or bf16; tensors `[B]` may also be `[B,1]`; p
/// and k are not both NULL.
typedef struct tk_apply_top_k_top_p_args {
  /// sizeof(tk_apply_top_k_top_p_args)
  size_t struct_size;
  /// T[B,V]
  const struct tk_tensor *logits;
  /// ? T[B]: the mass that top-p keeps; > 1 keeps all, 1 drops what has probability 0. Of equals at the cut the later ones stay.
  const struct tk_tensor *p;
  /// ? i32[B]: how many top-k keeps, with all equals of the last; <= 0 or >= V for all.
  const struct tk_tensor *k;
  /// T[B,V]
  const struct tk_tensor *out;
} tk_apply_top_k_top_p_args;

/// Keeps of every row of descending probabilities what top-k, top-p and min-p leave. T is f32, f16 or bf16; tensors `[B]` may also be
/// `[B,1]`.
typedef struct tk_apply_top_k_top_p_min_p_args {
  /// sizeof(tk_apply_top_k_top_p_min_p_args)
  size_t struct_size;
  /// T[B,V]: probabilities, each row descending.
  const struct tk_tensor *probs;
  /// i32[B]: how many columns count; all for k < 0 or k > V.
  const struct tk_tensor *k;
  /// T[B]: the probability that an entry may have before it.
  const struct tk_tensor *p;
  /// ? T[B]: the least probability, relative to the first of the row.
  const struct tk_tensor *min_p;
  /// T[B,V]: what is kept, and 0.
  const struct tk_tensor *sampled_res;
} tk_apply_top_k_top_p_min_p_args;

/// Query i of batch b sees the keys of positions 0 ..= start_pos[b] + i. Query heads are a multiple of the KV heads of the cache, whose
/// dtype K is f32, f16 or bf16.
typedef struct tk_attention_args {
  /// sizeof(tk_attention_args)
  size_t struct_size;
  /// f32[B,heads,S,D]
  const struct tk_tensor *query;
  /// K[B,KV,T,D]
  const struct tk_tensor *key_cache;
  /// K[B,KV,T,D]
  const struct tk_tensor *value_cache;
  /// i64[B] or i64[B,1]
  const struct tk_tensor *start_pos;
  /// ? f32[S,T]: entry [i,j] is added to the score of query i with position j
  const struct tk_tensor *mask;
  /// 0: 1 / sqrt(D)
  double scale;
  /// f32[B,heads,S,D]
  const struct tk_tensor *output;
} tk_attention_args;

/// Attention and feed-forward network of one layer; the new keys and values go into the caches at start_pos[b] + s. T is f32, f16
/// or bf16, as is the dtype K of the caches. Weights as in tk_quant_matmul; heads is a multiple of kv_heads.
typedef struct tk_decoder_layer_args {
  /// sizeof(tk_decoder_layer_args)
  size_t struct_size;
  /// T[B,S,H]
  const struct tk_tensor *input;
  /// i64[B] or i64[B,1]
  const struct tk_tensor *start_pos;
  /// f32[T,D], of tk_rope_table
  const struct tk_tensor *freqs;
  /// T[H]
  const struct tk_tensor *attention_norm;
  /// i8, K = H, N = heads*D
  const struct tk_tensor *wq;
  /// f32[heads*D]
  const struct tk_tensor *wq_scale;
  /// i8, K = H, N = kv_heads*D
  const struct tk_tensor *wk;
  /// f32[kv_heads*D]
  const struct tk_tensor *wk_scale;
  /// i8, K = H, N = kv_heads*D
  const struct tk_tensor *wv;
  /// f32[kv_heads*D]
  const struct tk_tensor *wv_scale;
  /// i8, K = heads*D, N = H
  const struct tk_tensor *wo;
  /// f32[H]
  const struct tk_tensor *wo_scale;
  /// T[H]
  const struct tk_tensor *ffn_norm;
  /// i8, K = H, N = F
  const struct tk_tensor *w1;
  /// f32[F]
  const struct tk_tensor *w1_scale;
  /// i8, K = H, N = F
  const struct tk_tensor *w3;
  /// f32[F]
  const struct tk_tensor *w3_scale;
  /// i8, K = F, N = H
  const struct tk_tensor *w2;
  /// f32[H]
  const struct tk_tensor *w2_scale;
  /// TK_FORMAT_PACKED, or TK_FORMAT_ND or TK_FORMAT_NZ, packed again in every call
  int32_t weight_format;
  /// Query heads
  int64_t heads;
  /// Heads of the caches
  int64_t kv_heads;
  /// 1e-5
  double eps;
  /// ? f32[S,T]: added to the scores, on top of causality
  const struct tk_tensor *mask;
  /// K[B,kv_heads,T,D], read and written
  const struct tk_tensor *key_cache;
  /// K[B,kv_heads,T,D], read and written
  const struct tk_tensor *value_cache;
  /// T[B,S,H]
  const struct tk_tensor *output;
} tk_decoder_layer_args;

/// output = residual + input * input_scale * weight_scale. T is f32, f16 or bf16.
typedef struct tk_dequant_residual_args {
  /// sizeof(tk_dequant_residual_args)
  size_t struct_size;
  /// i32[M,H]
  const struct tk_tensor *input;
  /// f32[M]
  const struct tk_tensor *input_scale;
  /// f32[H]
  const struct tk_tensor *weight_scale;
  /// T[M,H]
  const struct tk_tensor *residual;
  /// T[M,H]
  const struct tk_tensor *output;
} tk_dequant_residual_args;

/// hidden = residual + input * input_scale * weight_scale; then tk_rms_norm_quant of hidden. T is f32, f16 or bf16.
typedef struct tk_dequant_residual_rms_norm_quant_args {
  /// sizeof(tk_dequant_residual_rms_norm_quant_args)
  size_t struct_size;
  /// i32[M,H]
  const struct tk_tensor *input;
  /// f32[M]
  const struct tk_tensor *input_scale;
  /// f32[H]
  const struct tk_tensor *weight_scale;
  /// T[M,H]
  const struct tk_tensor *residual;
  /// T[H]
  const struct tk_tensor *gamma;
  /// 1e-5
  double eps;
  /// i8[M,H]
  const struct tk_tensor *output;
  /// f32[M]
  const struct tk_tensor *output_scale;
  /// T[M,H]
  const struct tk_tensor *hidden;
} tk_dequant_residual_rms_norm_quant_args;

/// silu(w1 * input_scale * w1_scale) * (w3 * input_scale * w3_scale), each row quantised to int8 with a scale of its own.
typedef struct tk_dequant_swiglu_quant_args {
  /// sizeof(tk_dequant_swiglu_quant_args)
  size_t struct_size;
  /// i32[M,F], the gate
  const struct tk_tensor *w1;
  /// i32[M,F]
  const struct tk_tensor *w3;
  /// f32[M]
  const struct tk_tensor *input_scale;
  /// f32[F]
  const struct tk_tensor *w1_scale;
  /// f32[F]
  const struct tk_tensor *w3_scale;
  /// i8[M,F]
  const struct tk_tensor *output;
  /// f32[M]
  const struct tk_tensor *output_scale;
} tk_dequant_swiglu_quant_args;

/// output = input * input_scale * weight_scale, by heads.
typedef struct tk_dequant_transpose_args {
  /// sizeof(tk_dequant_transpose_args)
  size_t struct_size;
  /// i32[B,S,heads*D]
  const struct tk_tensor *input;
  /// f32[B,S]
  const struct tk_tensor *input_scale;
  /// f32[heads*D]
  const struct tk_tensor *weight_scale;
  /// f32[B,heads,S,D]
  const struct tk_tensor *output;
} tk_dequant_transpose_args;

/// output = input * input_scale * weight_scale, by heads, rotated by position: token s of batch b is at start_pos[b] + s.
typedef struct tk_dequant_rope_transpose_args {
  /// sizeof(tk_dequant_rope_transpose_args)
  size_t struct_size;
  /// i32[B,S,heads*D]
  const struct tk_tensor *input;
  /// f32[B,S]
  const struct tk_tensor *input_scale;
  /// f32[heads*D]
  const struct tk_tensor *weight_scale;
  /// f32[T,D], of tk_rope_table
  const struct tk_tensor *freqs;
  /// i64[B] or i64[B,1]
  const struct tk_tensor *start_pos;
  /// f32[B,heads,S,D]
  const struct tk_tensor *output;
} tk_dequant_rope_transpose_args;

/// output[b,s] = table[ids[b,s]] * scale. T is f32, f16 or bf16. An id outside [0,V): 161002, and nothing is written.
typedef struct tk_embedding_lookup_args {
  /// sizeof(tk_embedding_lookup_args)
  size_t struct_size;
  /// i32[B,S]
  const struct tk_tensor *ids;
  /// T[V,H]
  const struct tk_tensor *table;
  /// 1
  double scale;
  /// T[B,S,H]
  const struct tk_tensor *output;
} tk_embedding_lookup_args;

/// Exponential numbers from Philox4x32-10, numbered row-major over a tensor of any rank. T is f32, f16 or bf16.
typedef struct tk_exponential_args {
  /// sizeof(tk_exponential_args)
  size_t struct_size;
  /// 1, above 0
  double rate;
  /// 0
  int64_t seed;
  /// 0: four words make a counter, 4n + 1 to 4n + 4 the same. Calls share no number where offsets are 4 * ceil(elements / 638976) apart.
  int64_t offset;
  /// T
  const struct tk_tensor *out;
} tk_exponential_args;

/// Rows sorted by expert, each times its expert's weights, then SwiGLU of the two halves and quantisation:
/// c = (sum over k of x[m,k] * weight[e,k,n] + bias[e,n]) * x_scale[m] * weight_scale[e,n] + offset[e,n],
/// S[j] = c[j] / (1 + exp(-c[j])) * c[j + N/2], output_scale = max |S| / 127, output = round(S / output_scale).
/// An f32 bias is added after the scales. With output_offset: output_scale = (max S - min S) / 255,
/// output_offset = -128 - round(min S / output_scale), output = round(S / output_scale + output_offset).
/// Rows behind the last group are not written. int4 weights: weight_scale is the bits of an f32, of channels or of G groups of K / G
/// rows, bias the assist matrix, required; arithmetic 2, offset and output_offset are refused. N is even, K at most 65536; fp16_rounding
/// with output_offset is refused.
typedef struct tk_grouped_matmul_swiglu_quant_args {
  /// sizeof(tk_grouped_matmul_swiglu_quant_args)
  size_t struct_size;
  /// i8[M,K]
  const struct tk_tensor *x;
  /// i8 or i4, see weight_format; of i4 the columns are neighbours, and an even number apart in every other dimension
  const struct tk_tensor *weight;
  /// ? i32 or f32 [E,N]
  const struct tk_tensor *bias;
  /// ? f32[E,N]
  const struct tk_tensor *offset;
  /// f32, f16 or bf16 [E,N]; int4 weights: u64 or i64, [E,N] or [E,G,N]
  const struct tk_tensor *weight_scale;
  /// f32[M]
  const struct tk_tensor *x_scale;
  /// i64[L], L <= E
  const struct tk_tensor *group_list;
  /// TK_FORMAT_ND [E,K,N], or TK_FORMAT_NZ or TK_FORMAT_PACKED
  int32_t weight_format;
  /// TK_GROUP_LIST_ENDS, or TK_GROUP_LIST_COUNTS
  int32_t group_list_type;
  /// 1: x_scale first, S * (1 / output_scale); 2: weight_scale first, S / output_scale
  int32_t arithmetic;
  /// Whether S * (1 / output_scale) is rounded to half precision before it is rounded to an integer; false
  bool fp16_rounding;
  /// i8[M,N/2]
  const struct tk_tensor *output;
  /// f32[M]
  const struct tk_tensor *output_scale;
  /// ? f32[M]
  const struct tk_tensor *output_offset;
} tk_grouped_matmul_swiglu_quant_args;

/// Indices drawn from rows of weights, which are taken as f32 and need not sum to 1; negative ones and NaN count as 0.
typedef struct tk_multinomial_args {
  /// sizeof(tk_multinomial_args)
  size_t struct_size;
  /// f32, f16, bf16 or f64, [N,C] or [C]; C at most 2^24
  const struct tk_tensor *probs;
  /// 1; at most C without replacement
  int64_t num_samples;
  /// true: whether an index may come again.
  bool replacement;
  /// 0
  int64_t seed;
  /// 0: four words make a counter, 4n + 1 to 4n + 4 the same. Calls share no number where offsets are 4 apart for each 638 976
  /// elements of probs, 4 * ceil(elements / 638976); where several are drawn with replacement, 4 apart.
  int64_t offset;
  /// i64[N,num_samples], or [num_samples] for [C]
  const struct tk_tensor *out;
} tk_multinomial_args;

/// Packs weights once, for every call and every machine. Floats are quantised by column: weight_scale = max |weight| / 127,
/// q = round(weight / weight_scale).
typedef struct tk_pack_weight_args {
  /// sizeof(tk_pack_weight_args)
  size_t struct_size;
  /// [E,K,N] or [K,N]: i8, i4 (N even, neighbouring columns in a byte), or f32, f16 or bf16. K is at most 65536
  const struct tk_tensor *weight;
  /// How the weight lies: TK_FORMAT_ND, or TK_FORMAT_NZ (i8 and i4)
  int32_t weight_format;
  /// i8[bytes], exactly what tk_pack_weight_bytes says
  const struct tk_tensor *packed;
  /// ? f32[E,N], of one matrix also f32[N]; required for floats
  const struct tk_tensor *weight_scale;
} tk_pack_weight_args;

/// out = (sum over k of x[m,k] * weight[k,n] + bias[n]) * x_scale[m] * weight_scale[n]. The sum is exact; an i32 bias is added to it, an
/// f32 bias after the scales. A NULL scale counts as 1. An i32 `out` is the sum itself, saturated: no scales, no f32 bias. K is at most
/// 65536.
typedef struct tk_quant_matmul_args {
  /// sizeof(tk_quant_matmul_args)
  size_t struct_size;
  /// i8[M,K]
  const struct tk_tensor *x;
  /// i8, see weight_format
  const struct tk_tensor *weight;
  /// ? f32, f16 or bf16 [N]
  const struct tk_tensor *weight_scale;
  /// ? f32[M]
  const struct tk_tensor *x_scale;
  /// ? i32 or f32 [N]
  const struct tk_tensor *bias;
  /// TK_FORMAT_ND, or TK_FORMAT_NZ or TK_FORMAT_PACKED
  int32_t weight_format;
  /// f32, f16, bf16 or i32 [M,N]
  const struct tk_tensor *out;
} tk_quant_matmul_args;

/// Each row to int8: output_scale = max |input| / 127, output = round(input / output_scale). The rows of [B,heads,S,D] are tokens:
/// heads*D numbers. T is f32, f16 or bf16.
typedef struct tk_quantize_rows_args {
  /// sizeof(tk_quantize_rows_args)
  size_t struct_size;
  /// T[M,N] or T[B,heads,S,D]
  const struct tk_tensor *input;
  /// i8[M,N] or i8[B,S,heads*D]
  const struct tk_tensor *output;
  /// f32[M] or f32[B*S]
  const struct tk_tensor *output_scale;
} tk_quantize_rows_args;

/// output[b][t] = word_ids[prompt_lengths[b] - min_prompt + t][b] for t < sequence_length[b]; columns behind are not written. A length
/// that is beyond T or the steps: 161002, and nothing is written.
typedef struct tk_remove_prompt_tokens_args {
  /// sizeof(tk_remove_prompt_tokens_args)
  size_t struct_size;
  /// i32[steps,B]
  const struct tk_tensor *word_ids;
  /// i32[B]
  const struct tk_tensor *sequence_length;
  /// i32[B]
  const struct tk_tensor *prompt_lengths;
  /// 0: the shortest prompt, whose next position is step 0
  int64_t min_prompt;
  /// i32[B,T]
  const struct tk_tensor *output;
} tk_remove_prompt_tokens_args;

/// output = gamma * (input / sqrt(mean(input^2) + eps)), row by row. T is f32, f16 or bf16. Numbers from 1.15e18 on may make NaN of
/// their row: squares are added in f32, 256 at a time.
typedef struct tk_rms_norm_args {
  /// sizeof(tk_rms_norm_args)
  size_t struct_size;
  /// T[M,H]
  const struct tk_tensor *input;
  /// T[H]
  const struct tk_tensor *gamma;
  /// 1e-5
  double eps;
  /// T[M,H]
  const struct tk_tensor *output;
} tk_rms_norm_args;

/// RMSNorm, then each row quantised to int8: output_scale = max |y| / 127, output = round(y / output_scale). T is f32, f16 or bf16.
typedef struct tk_rms_norm_quant_args {
  /// sizeof(tk_rms_norm_quant_args)
  size_t struct_size;
  /// T[M,H]
  const struct tk_tensor *input;
  /// T[H]
  const struct tk_tensor *gamma;
  /// 1e-5
  double eps;
  /// i8[M,H]
  const struct tk_tensor *output;
  /// f32[M]
  const struct tk_tensor *output_scale;
} tk_rms_norm_quant_args;

/// Row t: cos and sin, interleaved, of (start + t) * theta^(-2i/D).
typedef struct tk_rope_table_args {
  /// sizeof(tk_rope_table_args)
  size_t struct_size;
  /// 0, the position of the first row
  int64_t start;
  /// 10000
  double theta;
  /// f32[T,D]
  const struct tk_tensor *output;
} tk_rope_table_args;

/// Token s of batch b goes to position start_pos[b] + s of the caches, whose dtype K is f32, f16 or bf16. A position outside [0,T):
/// 161002, and nothing is written.
typedef struct tk_store_kv_cache_args {
  /// sizeof(tk_store_kv_cache_args)
  size_t struct_size;
  /// f32[B,KV,S,D]
  const struct tk_tensor *key;
  /// f32[B,KV,S,D]
  const struct tk_tensor *value;
  /// i64[B] or i64[B,1]
  const struct tk_tensor *start_pos;
  /// K[B,KV,T,D]
  const struct tk_tensor *key_cache;
  /// K[B,KV,T,D]
  const struct tk_tensor *value_cache;
} tk_store_kv_cache_args;

/// The next token of each row, drawn by one number among its k largest logits. A row whose prompt_mask is true in column cur_pos
/// takes its token from prompt_tokens; there is none from P on. Else a finished row yields end_id. Any other is sampled: its length
/// grows by 1, and it is finished if the token is end_id. Tensors `[B]` may also be `[B,1]`.
typedef struct tk_top_k_sampling_args {
  /// sizeof(tk_top_k_sampling_args)
  size_t struct_size;
  /// f32[B,V]
  const struct tk_tensor *logits;
  /// f32[B] in [0,1): what lies outside counts as the nearer end, a NaN as 0.
  const struct tk_tensor *random;
  /// ? i32[B,P]; both or neither
  const struct tk_tensor *prompt_tokens;
  /// ? bool[B,P]
  const struct tk_tensor *prompt_mask;
  /// 0
  int64_t cur_pos;
  /// 0: to be set, 1 to V
  int64_t k;
  /// 0: what each rank, from the best down, adds to its logit
  double diversity_rate;
  /// 0: inside [0,V) where finished is given
  int32_t end_id;
  /// i32[B]
  const struct tk_tensor *ids;
  /// ? i32[B], read and written
  const struct tk_tensor *sequence_length;
  /// ? bool[B], read and written
  const struct tk_tensor *finished;
} tk_top_k_sampling_args;

/// Keeps of every row of logits what top-k, top-p and min-p leave, and chooses one token of it. T is f32, f16 or bf16; tensors `[B]` may
/// also be `[B,1]`.
typedef struct tk_top_k_top_p_sample_args {
  /// sizeof(tk_top_k_top_p_sample_args)
  size_t struct_size;
  /// T[B,V]: logits, or probabilities
  const struct tk_tensor *logits;
  /// i32[B]: how many tokens top-k keeps; outside 1 to min(V, K) the stage is skipped for that row, K being what ks_max comes to.
  const struct tk_tensor *top_k;
  /// T[B]: the mass that top-p keeps; <= 0 keeps the best token, >= 1 all.
  const struct tk_tensor *top_p;
  /// ? f32[B,V] noise for TK_POST_SAMPLE_Q, by place in the row's list; i64[r,2] (seed, offset) of each row for
  /// TK_POST_SAMPLE_MULTINOMIAL, where the last line serves the rows beyond. Rows of one line share their noise, and so do offsets
  /// from 4n + 1 to 4n + 4: the next token of a row takes one 4 higher, or 8 where V is above 638976.
  const struct tk_tensor *q;
  /// ? T[B]: the least probability, relative to the largest; <= 0 keeps all, >= 1 the best token.
  const struct tk_tensor *min_ps;
  /// 1e-8: added to the noise of q. Negative or no finite f32: 161002, also where there is no q.
  double eps;
  /// false: whether to write logits_top_kp_select.
  bool is_need_logits;
  /// 32; without effect.
  int64_t top_k_guess;
  /// 1024: the largest top_k, as its low 32 bits, rounded up to a multiple of 8 and cut at 1024; 0 switches top-k off.
  int64_t ks_max;
  /// true: whether `logits` are logits, and not probabilities.
  bool input_is_logits;
  /// TK_POST_SAMPLE_Q
  int32_t post_sample;
  /// ? i64[B]: the chosen tokens; NULL only with logits_idx and logits_sort_masked.
  const struct tk_tensor *logits_select_idx;
  /// ? f32[B,V]: the logits of the kept tokens; -inf, or 0 for probabilities, elsewhere.
  const struct tk_tensor *logits_top_kp_select;
  /// ? u8[B], bits: 1 a NaN was seen, 2 a +inf was seen, 4 nothing to choose from.
  const struct tk_tensor *row_status;
  /// ? i64[B,V]: the kept tokens in order, then 0; with logits_sort_masked or not at all.
  const struct tk_tensor *logits_idx;
  /// ? f32[B,V]: their probabilities, then 0.
  const struct tk_tensor *logits_sort_masked;
  /// ? i64[2]: the (seed, offset) of the batch. It is not advanced: the next call takes an offset 12 higher, or 4 * ceil(B V / 638976)
  /// where that is more.
  const struct tk_tensor *generator;
} tk_top_k_top_p_sample_args;

/// The first version of tk_top_k_top_p_sample: top-p keeps one token more where a sum is exactly p, and what it keeps is normalised
/// again. T is f32, f16 or bf16; tensors `[B]` may also be `[B,1]`.
typedef struct tk_top_k_top_p_sample_v1_args {
  /// sizeof(tk_top_k_top_p_sample_v1_args)
  size_t struct_size;
  /// T[B,V]
  const struct tk_tensor *logits;
  /// i32[B]: how many tokens top-k keeps; outside 1 to min(V, 1024) the stage is skipped for that row.
  const struct tk_tensor *top_k;
  /// T[B]: the mass that top-p keeps; outside (0,1) the stage is skipped for that row.
  const struct tk_tensor *top_p;
  /// ? f32[B,V]: noise, by place in the row's list.
  const struct tk_tensor *q;
  /// 1e-8: added to the noise of q. Negative or no finite f32: 161002, also where there is no q.
  double eps;
  /// false: whether to write logits_top_kp_select.
  bool is_need_logits;
  /// 32; without effect.
  int64_t top_k_guess;
  /// i64[B]: the chosen tokens.
  const struct tk_tensor *logits_select_idx;
  /// ? f32[B,V]: the logits of the kept tokens, -inf elsewhere.
  const struct tk_tensor *logits_top_kp_select;
  /// ? u8[B], bits: 1 a NaN was seen, 2 a +inf was seen, 4 nothing to choose from.
  const struct tk_tensor *row_status;
} tk_top_k_top_p_sample_v1_args;

/// The next token of each row, drawn by one number from the smallest set of its most probable tokens whose sum exceeds p, at least
/// one. A row whose prompt_mask is true in column cur_pos takes its token from prompt_tokens; there is none from P on. Else a
/// finished row yields end_id. Any other is sampled: its length grows by 1, and it is finished if the token is end_id. Tensors
/// `[B]` may also be `[B,1]`.
typedef struct tk_top_p_sampling_args {
  /// sizeof(tk_top_p_sampling_args)
  size_t struct_size;
  /// f32[B,V]
  const struct tk_tensor *probs;
  /// f32[B] in [0,1): what lies outside counts as the nearer end, a NaN as 0.
  const struct tk_tensor *random;
  /// ? i32[B,P]; both or neither
  const struct tk_tensor *prompt_tokens;
  /// ? bool[B,P]
  const struct tk_tensor *prompt_mask;
  /// 0
  int64_t cur_pos;
  /// 0: the best alone
  double p;
  /// 0: inside [0,V) where finished is given
  int32_t end_id;
  /// i32[B]
  const struct tk_tensor *ids;
  /// ? i32[B], read and written
  const struct tk_tensor *sequence_length;
  /// ? bool[B], read and written
  const struct tk_tensor *finished;
} tk_top_p_sampling_args;

/// The logits of the last of S tokens; of a row that is finished FLT_MAX at end_id and -FLT_MAX elsewhere. With softmax the
/// probabilities of that row, where a NaN counts as -inf and a +inf as FLT_MAX.
typedef struct tk_update_logits_args {
  /// sizeof(tk_update_logits_args)
  size_t struct_size;
  /// f32[B,S,V]
  const struct tk_tensor *logits;
  /// ? bool[B]
  const struct tk_tensor *finished;
  /// 0: inside [0,V) where finished is given
  int32_t end_id;
  /// false
  bool softmax;
  /// f32[B,V]
  const struct tk_tensor *output;
} tk_update_logits_args;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The name of the instruction set that calls with this context run on; NULL for one that this processor lacks, "ascend" for an
/// NPU.
const char *tk_isa_name(const struct tk_context *context);

/// How much memory a decoding takes, for contexts of up to as many threads as this one.
int32_t tk_decoding_bytes(struct tk_context *context,
                          const struct tk_decoding_config *config,
                          const struct tk_model *model,
                          size_t *bytes);

/// Makes a decoding in `memory`, which is aligned to 64 bytes and has no byte of the model (161002). Its rows have no prompts yet: they
/// are finished. Each has TK_ROW_SAMPLING_INIT, so that rows of one prompt draw the same until tk_decoding_set_row gives each a seed of
/// its own. The model must outlive it. A row whose logits are all NaN or -inf, as numbers beyond the activations' dtype make them,
/// takes token 0.
int32_t tk_decoding_init(struct tk_context *context,
                         const struct tk_decoding_config *config,
                         const struct tk_model *model,
                         void *memory,
                         size_t bytes,
                         struct tk_decoding **decoding);

/// How a row chooses its tokens, from the next one on.
int32_t tk_decoding_set_row(struct tk_decoding *decoding, int64_t row, const struct tk_row_sampling *sampling);

/// A new prompt, i32[P], for a row that has none, has ended or is given up; the other rows do not notice.
int32_t tk_decoding_replace_row(struct tk_context *context,
                                struct tk_decoding *decoding,
                                int64_t row,
                                const struct tk_tensor *tokens);

/// Ends a row: a text or a token to stop at was found, or nobody waits for it any more. It gives end_id from here on.
int32_t tk_decoding_stop_row(struct tk_decoding *decoding, int64_t row);

/// Takes all prompts away; the sampling of the rows stays.
int32_t tk_decoding_reset(struct tk_decoding *decoding);

/// Gives every row its prompt: tokens i32[B,P], of which row b has the first lengths[b], at least one; lengths i32[B].
int32_t tk_decoding_prompt(struct tk_context *context,
                           struct tk_decoding *decoding,
                           const struct tk_tensor *tokens,
                           const struct tk_tensor *lengths);

/// Gives every row its next token, i32[B]; a row that has ended gives end_id.
int32_t tk_decoding_step(struct tk_context *context, struct tk_decoding *decoding, const struct tk_tensor *ids);

/// tk_decoding_step that lets `edit` change the logits of each row that has not ended, in the order of rows, in the calling thread. A row
/// of which nothing is left takes token 0.
int32_t tk_decoding_step_with(struct tk_context *context,
                              struct tk_decoding *decoding,
                              const struct tk_tensor *ids,
                              tk_edit_logits edit,
                              void *user);

/// The logits that a row's last token was chosen from: of a greedy row as the model, or who edited them, gave them, of another divided by
/// the temperature, and -INFINITY where a `top_k` above 1024 cut. They stay until the next step or a new prompt; a row that took no part
/// in the last step has none: 161002.
int32_t tk_decoding_logits(const struct tk_decoding *decoding,
                           int64_t row,
                           const float **logits,
                           size_t *count);

/// 1 when no row has a token to come, since it has ended or has no prompt, else 0; 161001 for NULL.
int32_t tk_decoding_finished(const struct tk_decoding *decoding);

/// What the rows have generated, the end token included: ids i32[B,max_new], -1 behind the end; lengths i32[B].
int32_t tk_decoding_output(struct tk_context *context,
                           const struct tk_decoding *decoding,
                           const struct tk_tensor *ids,
                           const struct tk_tensor *lengths);

/// How much memory the model in `file` takes.
int32_t tk_model_bytes(struct tk_context *context,
                       const struct tk_model_options *options,
                       const void *file,
                       size_t file_bytes,
                       size_t *bytes);

/// Loads a .tkm file or a llama2.c checkpoint of version 0 or 1 into `memory`, which is aligned to 64 bytes and has no byte of the file
/// or the tokenizer (161002). The file may be freed after the load, the memory after the last use of the model.
int32_t tk_model_load(struct tk_context *context,
                      const struct tk_model_options *options,
                      const void *file,
                      size_t file_bytes,
                      void *memory,
                      size_t bytes,
                      struct tk_model **model);

/// How many tokens the model knows, and the longest sequence, in tokens. Either place may be NULL.
int32_t tk_model_sizes(const struct tk_model *model, int64_t *vocab, int64_t *longest);

/// The bytes of token `id` after token `previous`: the model's own, without a NUL. A character may be several tokens.
int32_t tk_model_token_text(const struct tk_model *model, int32_t previous, int32_t id, const char **text, size_t *length);

/// The ids of `text`, none added for its beginning. `count` says how many there are; if that is more than `capacity`, -1 is
/// returned and no id is written.
int32_t tk_model_encode(const struct tk_model *model,
                        const char *text,
                        size_t length,
                        int32_t *ids,
                        size_t capacity,
                        size_t *count);

/// The workspace of tk_apply_top_k_top_p, in bytes.
int32_t tk_apply_top_k_top_p_workspace_size(struct tk_context *context,
                                            const struct tk_apply_top_k_top_p_args *args,
                                            size_t *bytes);

/// Filters of logits.
int32_t tk_apply_top_k_top_p(struct tk_context *context,
                             const struct tk_apply_top_k_top_p_args *args,
                             void *workspace,
                             size_t workspace_bytes);

/// The workspace of tk_apply_top_k_top_p_min_p, in bytes.
int32_t tk_apply_top_k_top_p_min_p_workspace_size(struct tk_context *context,
                                                  const struct tk_apply_top_k_top_p_min_p_args *args,
                                                  size_t *bytes);

/// Filters of sorted probabilities.
int32_t tk_apply_top_k_top_p_min_p(struct tk_context *context,
                                   const struct tk_apply_top_k_top_p_min_p_args *args,
                                   void *workspace,
                                   size_t workspace_bytes);

/// The workspace of tk_attention, in bytes.
int32_t tk_attention_workspace_size(struct tk_context *context, const struct tk_attention_args *args, size_t *bytes);

/// Attention of new queries over the caches.
int32_t tk_attention(struct tk_context *context, const struct tk_attention_args *args, void *workspace, size_t workspace_bytes);

/// The workspace of tk_decoder_layer, in bytes.
int32_t tk_decoder_layer_workspace_size(struct tk_context *context, const struct tk_decoder_layer_args *args, size_t *bytes);

/// A layer of the decoder.
int32_t tk_decoder_layer(struct tk_context *context,
                         const struct tk_decoder_layer_args *args,
                         void *workspace,
                         size_t workspace_bytes);

/// The workspace of tk_dequant_residual, in bytes.
int32_t tk_dequant_residual_workspace_size(struct tk_context *context,
                                           const struct tk_dequant_residual_args *args,
                                           size_t *bytes);

/// Dequantisation onto a residual.
int32_t tk_dequant_residual(struct tk_context *context,
                            const struct tk_dequant_residual_args *args,
                            void *workspace,
                            size_t workspace_bytes);

/// The workspace of tk_dequant_residual_rms_norm_quant, in bytes.
int32_t tk_dequant_residual_rms_norm_quant_workspace_size(struct tk_context *context,
                                                          const struct tk_dequant_residual_rms_norm_quant_args *args,
                                                          size_t *bytes);

/// Dequantisation onto a residual, and RMSNorm of the sum to int8.
int32_t tk_dequant_residual_rms_norm_quant(struct tk_context *context,
                                           const struct tk_dequant_residual_rms_norm_quant_args *args,
                                           void *workspace,
                                           size_t workspace_bytes);

/// The workspace of tk_dequant_swiglu_quant, in bytes.
int32_t tk_dequant_swiglu_quant_workspace_size(struct tk_context *context,
                                               const struct tk_dequant_swiglu_quant_args *args,
                                               size_t *bytes);

/// SwiGLU of int32 sums, to int8.
int32_t tk_dequant_swiglu_quant(struct tk_context *context,
                                const struct tk_dequant_swiglu_quant_args *args,
                                void *workspace,
                                size_t workspace_bytes);

/// The workspace of tk_dequant_transpose, in bytes.
int32_t tk_dequant_transpose_workspace_size(struct tk_context *context,
                                            const struct tk_dequant_transpose_args *args,
                                            size_t *bytes);

/// Dequantisation and transposition to heads.
int32_t tk_dequant_transpose(struct tk_context *context,
                             const struct tk_dequant_transpose_args *args,
                             void *workspace,
                             size_t workspace_bytes);

/// The workspace of tk_dequant_rope_transpose, in bytes.
int32_t tk_dequant_rope_transpose_workspace_size(struct tk_context *context,
                                                 const struct tk_dequant_rope_transpose_args *args,
                                                 size_t *bytes);

/// Dequantisation, RoPE and transposition to heads.
int32_t tk_dequant_rope_transpose(struct tk_context *context,
                                  const struct tk_dequant_rope_transpose_args *args,
                                  void *workspace,
                                  size_t workspace_bytes);

/// The workspace of tk_embedding_lookup, in bytes.
int32_t tk_embedding_lookup_workspace_size(struct tk_context *context,
                                           const struct tk_embedding_lookup_args *args,
                                           size_t *bytes);

/// The rows of a table that ids name.
int32_t tk_embedding_lookup(struct tk_context *context,
                            const struct tk_embedding_lookup_args *args,
                            void *workspace,
                            size_t workspace_bytes);

/// The workspace of tk_exponential, in bytes.
int32_t tk_exponential_workspace_size(struct tk_context *context, const struct tk_exponential_args *args, size_t *bytes);

/// Exponential numbers.
int32_t tk_exponential(struct tk_context *context,
                       const struct tk_exponential_args *args,
                       void *workspace,
                       size_t workspace_bytes);

/// The workspace of tk_grouped_matmul_swiglu_quant, in bytes.
int32_t tk_grouped_matmul_swiglu_quant_workspace_size(struct tk_context *context,
                                                      const struct tk_grouped_matmul_swiglu_quant_args *args,
                                                      size_t *bytes);

/// The grouped product. `group_list` is looked at here: entries that decrease, are negative or exceed M are 161002.
int32_t tk_grouped_matmul_swiglu_quant(struct tk_context *context,
                                       const struct tk_grouped_matmul_swiglu_quant_args *args,
                                       void *workspace,
                                       size_t workspace_bytes);

/// The workspace of tk_multinomial, in bytes.
int32_t tk_multinomial_workspace_size(struct tk_context *context, const struct tk_multinomial_args *args, size_t *bytes);

/// Indices drawn from rows of weights.
int32_t tk_multinomial(struct tk_context *context,
                       const struct tk_multinomial_args *args,
                       void *workspace,
                       size_t workspace_bytes);

/// The length of a packed [e,k,n], in bytes.
int32_t tk_pack_weight_bytes(int64_t e, int64_t k, int64_t n, size_t *bytes);

/// The workspace of tk_pack_weight, in bytes: 0.
int32_t tk_pack_weight_workspace_size(struct tk_context *context, const struct tk_pack_weight_args *args, size_t *bytes);

/// Packs a weight.
int32_t tk_pack_weight(struct tk_context *context,
                       const struct tk_pack_weight_args *args,
                       void *workspace,
                       size_t workspace_bytes);

/// The workspace of tk_quant_matmul, in bytes.
int32_t tk_quant_matmul_workspace_size(struct tk_context *context, const struct tk_quant_matmul_args *args, size_t *bytes);

/// The int8 product.
int32_t tk_quant_matmul(struct tk_context *context,
                        const struct tk_quant_matmul_args *args,
                        void *workspace,
                        size_t workspace_bytes);

/// The workspace of tk_quantize_rows, in bytes.
int32_t tk_quantize_rows_workspace_size(struct tk_context *context, const struct tk_quantize_rows_args *args, size_t *bytes);

/// Quantisation to int8, row by row.
int32_t tk_quantize_rows(struct tk_context *context,
                         const struct tk_quantize_rows_args *args,
                         void *workspace,
                         size_t workspace_bytes);

/// The workspace of tk_remove_prompt_tokens, in bytes.
int32_t tk_remove_prompt_tokens_workspace_size(struct tk_context *context,
                                               const struct tk_remove_prompt_tokens_args *args,
                                               size_t *bytes);

/// Generated tokens without their prompts.
int32_t tk_remove_prompt_tokens(struct tk_context *context,
                                const struct tk_remove_prompt_tokens_args *args,
                                void *workspace,
                                size_t workspace_bytes);

/// The workspace of tk_rms_norm, in bytes.
int32_t tk_rms_norm_workspace_size(struct tk_context *context, const struct tk_rms_norm_args *args, size_t *bytes);

/// RMSNorm.
int32_t tk_rms_norm(struct tk_context *context, const struct tk_rms_norm_args *args, void *workspace, size_t workspace_bytes);

/// The workspace of tk_rms_norm_quant, in bytes.
int32_t tk_rms_norm_quant_workspace_size(struct tk_context *context, const struct tk_rms_norm_quant_args *args, size_t *bytes);

/// RMSNorm to int8.
int32_t tk_rms_norm_quant(struct tk_context *context,
                          const struct tk_rms_norm_quant_args *args,
                          void *workspace,
                          size_t workspace_bytes);

/// The workspace of tk_rope_table, in bytes.
int32_t tk_rope_table_workspace_size(struct tk_context *context, const struct tk_rope_table_args *args, size_t *bytes);

/// The table that tk_dequant_rope_transpose rotates by.
int32_t tk_rope_table(struct tk_context *context, const struct tk_rope_table_args *args, void *workspace, size_t workspace_bytes);

/// The workspace of tk_store_kv_cache, in bytes.
int32_t tk_store_kv_cache_workspace_size(struct tk_context *context, const struct tk_store_kv_cache_args *args, size_t *bytes);

/// New keys and values into the caches.
int32_t tk_store_kv_cache(struct tk_context *context,
                          const struct tk_store_kv_cache_args *args,
                          void *workspace,
                          size_t workspace_bytes);

/// The workspace of tk_top_k_sampling, in bytes.
int32_t tk_top_k_sampling_workspace_size(struct tk_context *context, const struct tk_top_k_sampling_args *args, size_t *bytes);

/// Tokens drawn among the k best of each row.
int32_t tk_top_k_sampling(struct tk_context *context,
                          const struct tk_top_k_sampling_args *args,
                          void *workspace,
                          size_t workspace_bytes);

/// The workspace of tk_top_k_top_p_sample, in bytes.
int32_t tk_top_k_top_p_sample_workspace_size(struct tk_context *context,
                                             const struct tk_top_k_top_p_sample_args *args,
                                             size_t *bytes);

/// The choice of the next token.
int32_t tk_top_k_top_p_sample(struct tk_context *context,
                              const struct tk_top_k_top_p_sample_args *args,
                              void *workspace,
                              size_t workspace_bytes);

/// The workspace of tk_top_k_top_p_sample_v1, in bytes.
int32_t tk_top_k_top_p_sample_v1_workspace_size(struct tk_context *context,
                                                const struct tk_top_k_top_p_sample_v1_args *args,
                                                size_t *bytes);

/// The choice of the next token, first version.
int32_t tk_top_k_top_p_sample_v1(struct tk_context *context,
                                 const struct tk_top_k_top_p_sample_v1_args *args,
                                 void *workspace,
                                 size_t workspace_bytes);

/// The workspace of tk_top_p_sampling, in bytes.
int32_t tk_top_p_sampling_workspace_size(struct tk_context *context, const struct tk_top_p_sampling_args *args, size_t *bytes);

/// Tokens drawn among the most probable of each row.
int32_t tk_top_p_sampling(struct tk_context *context,
                          const struct tk_top_p_sampling_args *args,
                          void *workspace,
                          size_t workspace_bytes);

/// The workspace of tk_update_logits, in bytes.
int32_t tk_update_logits_workspace_size(struct tk_context *context, const struct tk_update_logits_args *args, size_t *bytes);

/// The logits of the last token, or their probabilities.
int32_t tk_update_logits(struct tk_context *context,
                         const struct tk_update_logits_args *args,
                         void *workspace,
                         size_t workspace_bytes);

/// major << 16 | minor << 8 | patch
uint32_t tk_version(void);

/// One short sentence, never NULL.
const char *tk_status_string(int32_t status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

// Initialisers: the size, and the defaults.
#define TK_CONTEXT_INIT \
  { sizeof(tk_context), 0, 0, NULL, NULL, NULL, 0, 0, { 0 } }
#define TK_DECODING_CONFIG_INIT \
  { sizeof(tk_decoding_config), 1, 0, 0, TK_F32, -1 }
#define TK_ROW_SAMPLING_INIT \
  { sizeof(tk_row_sampling), 1.0, 0, 1.0, 0.0, 0 }
#define TK_MODEL_OPTIONS_INIT \
  { sizeof(tk_model_options), TK_F32, TK_I8, NULL, 0 }
#define TK_APPLY_TOP_K_TOP_P_ARGS_INIT \
  { sizeof(tk_apply_top_k_top_p_args), NULL, NULL, NULL, NULL }
#define TK_APPLY_TOP_K_TOP_P_MIN_P_ARGS_INIT \
  { sizeof(tk_apply_top_k_top_p_min_p_args), NULL, NULL, NULL, NULL, NULL }
#define TK_ATTENTION_ARGS_INIT \
  { sizeof(tk_attention_args), NULL, NULL, NULL, NULL, NULL, 0.0, NULL }
#define TK_DECODER_LAYER_ARGS_INIT \
  { sizeof(tk_decoder_layer_args), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, TK_FORMAT_PACKED, 0, 0, 1e-5, NULL, NULL, NULL, NULL }
#define TK_DEQUANT_RESIDUAL_ARGS_INIT \
  { sizeof(tk_dequant_residual_args), NULL, NULL, NULL, NULL, NULL }
#define TK_DEQUANT_RESIDUAL_RMS_NORM_QUANT_ARGS_INIT \
  { sizeof(tk_dequant_residual_rms_norm_quant_args), NULL, NULL, NULL, NULL, NULL, 1e-5, NULL, NULL, NULL }
#define TK_DEQUANT_SWIGLU_QUANT_ARGS_INIT \
  { sizeof(tk_dequant_swiglu_quant_args), NULL, NULL, NULL, NULL, NULL, NULL, NULL }
#define TK_DEQUANT_TRANSPOSE_ARGS_INIT \
  { sizeof(tk_dequant_transpose_args), NULL, NULL, NULL, NULL }
#define TK_DEQUANT_ROPE_TRANSPOSE_ARGS_INIT \
  { sizeof(tk_dequant_rope_transpose_args), NULL, NULL, NULL, NULL, NULL, NULL }
#define TK_EMBEDDING_LOOKUP_ARGS_INIT \
  { sizeof(tk_embedding_lookup_args), NULL, NULL, 1.0, NULL }
#define TK_EXPONENTIAL_ARGS_INIT \
  { sizeof(tk_exponential_args), 1.0, 0, 0, NULL }
#define TK_GROUPED_MATMUL_SWIGLU_QUANT_ARGS_INIT \
  { sizeof(tk_grouped_matmul_swiglu_quant_args), NULL, NULL, NULL, NULL, NULL, NULL, NULL, TK_FORMAT_ND, TK_GROUP_LIST_ENDS, 1, false, NULL, NULL, NULL }
#define TK_MULTINOMIAL_ARGS_INIT \
  { sizeof(tk_multinomial_args), NULL, 1, true, 0, 0, NULL }
#define TK_PACK_WEIGHT_ARGS_INIT \
  { sizeof(tk_pack_weight_args), NULL, TK_FORMAT_ND, NULL, NULL }
#define TK_QUANT_MATMUL_ARGS_INIT \
  { sizeof(tk_quant_matmul_args), NULL, NULL, NULL, NULL, NULL, TK_FORMAT_ND, NULL }
#define TK_QUANTIZE_ROWS_ARGS_INIT \
  { sizeof(tk_quantize_rows_args), NULL, NULL, NULL }
#define TK_REMOVE_PROMPT_TOKENS_ARGS_INIT \
  { sizeof(tk_remove_prompt_tokens_args), NULL, NULL, NULL, 0, NULL }
#define TK_RMS_NORM_ARGS_INIT \
  { sizeof(tk_rms_norm_args), NULL, NULL, 1e-5, NULL }
#define TK_RMS_NORM_QUANT_ARGS_INIT \
  { sizeof(tk_rms_norm_quant_args), NULL, NULL, 1e-5, NULL, NULL }
#define TK_ROPE_TABLE_ARGS_INIT \
  { sizeof(tk_rope_table_args), 0, 10000.0, NULL }
#define TK_STORE_KV_CACHE_ARGS_INIT \
  { sizeof(tk_store_kv_cache_args), NULL, NULL, NULL, NULL, NULL }
#define TK_TOP_K_SAMPLING_ARGS_INIT \
  { sizeof(tk_top_k_sampling_args), NULL, NULL, NULL, NULL, 0, 0, 0.0, 0, NULL, NULL, NULL }
#define TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT \
  { sizeof(tk_top_k_top_p_sample_args), NULL, NULL, NULL, NULL, NULL, 1e-8, false, 32, 1024, true, TK_POST_SAMPLE_Q, NULL, NULL, NULL, NULL, NULL, NULL }
#define TK_TOP_K_TOP_P_SAMPLE_V1_ARGS_INIT \
  { sizeof(tk_top_k_top_p_sample_v1_args), NULL, NULL, NULL, NULL, 1e-8, false, 32, NULL, NULL, NULL }
#define TK_TOP_P_SAMPLING_ARGS_INIT \
  { sizeof(tk_top_p_sampling_args), NULL, NULL, NULL, NULL, 0, 0.0, 0, NULL, NULL, NULL }
#define TK_UPDATE_LOGITS_ARGS_INIT \
  { sizeof(tk_update_logits_args), NULL, NULL, 0, false, NULL }

#endif // TILEKERN_H
