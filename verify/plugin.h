/* Plugs kernels into indexpool: a C99 header, nothing to link.

   A plugin is a shared object that exports the two functions declared at the end. Its operations
   get host memory and give host memory; a CUDA plugin copies to and from its device itself. Each
   operation is called twice in a process of its own, with the inputs mapped read-only and every
   buffer between guard pages; a crash, a hang or a write outside is a verdict and the run goes on.

   To build and certify the example below (or one in C, with gcc):

     g++ -shared -fPIC -O2 -I PREFIX/include topk.cpp -o libtopk.so
     indexpool check --plugin libtopk.so

   --- topk.cpp ---
   #include <algorithm>
   #include <cmath>
   #include <vector>

   #include "indexpool/verify/plugin.h"

   // Of the visible pools of every row, the topk with the largest logits; equal: the lower pool.
   static int topk(const indexpool_topk_args* a) {
     const indexpool_sizes& z = *a->sizes;
     int32_t* row = static_cast<int32_t*>(a->selection.data);
     const float* logits = a->logits;
     for (int64_t s = 0; s < z.sequence_count; ++s) {
       for (int64_t at = 0; at < z.sequences[s].length; ++at) {
         const int64_t kpool = z.index_kpool, key = z.sequences[s].first_key;
         std::vector<int64_t> pools;
         for (int64_t p = 0; p < (at + 1) / kpool; ++p)
           if (!std::isnan(logits[p])) pools.push_back(p);
         std::stable_sort(pools.begin(), pools.end(),
                          [&](int64_t i, int64_t j) { return logits[i] > logits[j]; });
         pools.resize(std::min<size_t>(pools.size(), z.index_topk / kpool));
         std::sort(pools.begin(), pools.end());
         std::fill_n(row, z.selection_width, -1);
         int32_t* out = row;
         for (int64_t p : pools)
           for (int64_t j = 0; j < kpool; ++j) *out++ = key + p * kpool + j;
         out = row + z.index_topk;
         for (int64_t t = (at + 1) / kpool * kpool; z.always_select_tail && t <= at; ++t)
           *out++ = key + t;
         row += z.selection_width;
         logits += a->logits_stride;
       }
     }
     *a->selection.written = z.rows * z.selection_width;
     return INDEXPOOL_OK;
   }

   int indexpool_plugin_abi(void) { return INDEXPOOL_PLUGIN_ABI; }
   const indexpool_plugin* indexpool_plugin_table(void) {
     static indexpool_plugin table{};
     table.name = "sorting topk";
     table.topk = topk;
     return &table;
   }
   --- end --- */
#ifndef INDEXPOOL_VERIFY_PLUGIN_H
#define INDEXPOOL_VERIFY_PLUGIN_H

#include <stdint.h>

#if defined(__GNUC__)
#define INDEXPOOL_EXPORT __attribute__((visibility("default")))
#else
#define INDEXPOOL_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a struct or a meaning changes. */
#define INDEXPOOL_PLUGIN_ABI 1

/* What an operation returns. Any other value is an error; what the plugin printed is shown. */
enum {
  INDEXPOOL_OK = 0,
  INDEXPOOL_UNSUPPORTED = 1 /* does not take these sizes or dtypes: a verdict, not a failure */
};

/* Element types. e4m3 is the OCP "fn" variant (no infinities, largest 448). */
enum {
  INDEXPOOL_F32 = 1,
  INDEXPOOL_BF16 = 2,
  INDEXPOOL_F16 = 3,
  INDEXPOOL_E4M3 = 4,
  INDEXPOOL_I8 = 5
};

/* How a vector of D values becomes codes and one f32 scale, value = code * scale. */
enum {
  INDEXPOOL_SCALE_NONE = 0,         /* stored as they are: no scales anywhere */
  INDEXPOOL_SCALE_POWER_OF_TWO = 1, /* 2^ceil(log2(max(amax, 1e-4) / 448)) */
  INDEXPOOL_SCALE_AMAX = 2          /* max(amax, 1e-4) / largest code: 448, or 127 for int8 */
};

/* How an implementation adds the products of a dot product; decides the bound of its logits. */
enum {
  INDEXPOOL_ACCUMULATE_F32 = 0,          /* f32 multiplies and adds, in any order */
  INDEXPOOL_ACCUMULATE_MMA_F16_BF16 = 1, /* tensor cores, f16 or bf16 operands */
  INDEXPOOL_ACCUMULATE_MMA_E4M3 = 2,     /* tensor cores, e4m3 operands */
  INDEXPOOL_ACCUMULATE_MMA_I8 = 3        /* tensor cores, int8 operands: exact integers */
};

/* One sequence of the batch. Token t of it is row first_row + t of the [N, ...] arrays; its pool p
   pools tokens p * K ... p * K + K - 1 and is row first_pool + p of the [P, ...] arrays. */
struct indexpool_sequence {
  int64_t first_row;
  int64_t length; /* tokens; may be 0 */
  int64_t first_pool;
  int64_t pools;     /* length / K */
  int64_t first_key; /* padding before token 0: selections name first_key + t */
};

/* The problem. N = rows, P = pools, H = index_n_heads, D = index_head_dim, K = index_kpool. */
struct indexpool_sizes {
  int64_t rows;  /* tokens of all sequences, back to back */
  int64_t pools; /* of all sequences, back to back */
  int64_t sequence_count;
  const struct indexpool_sequence* sequences; /* [sequence_count] */
  int32_t index_n_heads;
  int32_t index_head_dim;
  int32_t index_kpool;
  int32_t index_topk;         /* tokens; index_topk / K pools are selected */
  int32_t always_select_tail; /* 1: the tokens after the last whole pool are always selected */
  int32_t selection_width;    /* index_topk, and K - 1 more with a forced tail */
  int32_t storage_dtype;      /* of keys, gate scores and queries: F32, BF16 or F16 */
  int32_t pooled_dtype;       /* the pooled key is rounded to this before anything else */
  int32_t cache_dtype;        /* of pool codes, and of query codes where there are scales */
  int32_t scale_rule;         /* INDEXPOOL_SCALE_... */
  int32_t hadamard;           /* 1: Sylvester order, times D^-0.5, rounded to pooled_dtype */
  int32_t
      storage_products; /* 1: softmax and products are rounded to storage_dtype too, sums are f32 */
};

/* Memory an operation writes. It belongs to the caller, is 64-byte aligned and holds nothing of
   use before; `data` may not be kept after the call returns. */
struct indexpool_output {
  void* data;
  int64_t capacity; /* elements */
  int64_t* written; /* out: elements written; -1 at first, and must be set */
};

/* pool[p, c] = sum_j w_j * key[p K + j, c], w = softmax over j of gate_score[p K + j, c] +
   ape[j, c], that sum in f32; rounded to pooled_dtype, rotated (hadamard), then quantised
   (scale_rule). */
struct indexpool_pool_args {
  const struct indexpool_sizes* sizes;
  const void* keys;                    /* [N, D] storage_dtype */
  const void* gate_scores;             /* [N, D] storage_dtype; may be -inf */
  const float* ape;                    /* [K, D] */
  struct indexpool_output pool_codes;  /* [P, D] cache_dtype: P * D elements */
  struct indexpool_output pool_scales; /* [P] f32: P elements; 0 and null without scales */
};

/* Rotates and quantises queries, a scale per row and head. Called only where there are scales. */
struct indexpool_quantize_query_args {
  const struct indexpool_sizes* sizes;
  const void* queries;                  /* [N, H, D] storage_dtype */
  struct indexpool_output query_codes;  /* [N, H, D] cache_dtype: N * H * D elements */
  struct indexpool_output query_scales; /* [N, H] f32: N * H elements */
};

/* logits[n, p] = s_p * sum_h head_weights[n, h] * logit_scale * query_scale[n, h] *
   max(0, query[n, h] . pool[p]) for the pools p < (t + 1) / K of the row's own sequence, t its
   token in it. What lies in the other columns is not looked at. */
struct indexpool_logits_args {
  const struct indexpool_sizes* sizes;
  const void* query_codes;        /* [N, H, D] cache_dtype; storage_dtype without scales */
  const float* query_scales;      /* [N, H]; null without scales */
  const float* head_weights;      /* [N, H] */
  float logit_scale;              /* dimensionless */
  const void* pool_codes;         /* [P, D] cache_dtype */
  const float* pool_scales;       /* [P]; null without scales */
  int64_t logits_stride;          /* elements from row to row; at least the pools of any row */
  struct indexpool_output logits; /* [N, logits_stride] f32: N * logits_stride elements */
};

/* Per row the index_topk / K visible pools with the largest logits (all of them if fewer): of equal
   logits (+0 and -0 are equal) the lower pool, NaN never. As token positions first_key + t, pools
   ascending, then -1; with a forced tail its tokens from column index_topk on, then -1. */
struct indexpool_topk_args {
  const struct indexpool_sizes* sizes;
  const float* logits; /* [N, logits_stride]; any value where a row does not see the pool */
  int64_t logits_stride;
  struct indexpool_output selection; /* [N, selection_width] i32: N * selection_width elements */
};

/* All of it at once, for kernels that fuse. The selection is required. The others are optional:
   leave their `written` at -1 and they are not judged; the selection is then judged by what the
   exact steps allow, so fewer rows are decidable. */
struct indexpool_pipeline_args {
  const struct indexpool_sizes* sizes;
  const void* keys;          /* as in indexpool_pool_args */
  const void* gate_scores;   /* as in indexpool_pool_args */
  const float* ape;          /* as in indexpool_pool_args */
  const void* queries;       /* as in indexpool_quantize_query_args */
  const float* head_weights; /* as in indexpool_logits_args */
  float logit_scale;
  int64_t logits_stride;
  struct indexpool_output pool_codes;
  struct indexpool_output pool_scales;
  struct indexpool_output query_codes;
  struct indexpool_output query_scales;
  struct indexpool_output logits;
  struct indexpool_output selection;
};

/* What a plugin offers. A null operation is not offered. The table must outlive the plugin's use:
   a static object. */
struct indexpool_plugin {
  const char* name;     /* shown in reports; null: the file's name */
  int32_t accumulation; /* INDEXPOOL_ACCUMULATE_...: of logits and pipeline */
  int (*pool)(const struct indexpool_pool_args* args);
  int (*quantize_query)(const struct indexpool_quantize_query_args* args);
  int (*logits)(const struct indexpool_logits_args* args);
  int (*topk)(const struct indexpool_topk_args* args);
  int (*pipeline)(const struct indexpool_pipeline_args* args);
};

/* The plugin defines these two. The first returns INDEXPOOL_PLUGIN_ABI as it was compiled. */
INDEXPOOL_EXPORT int indexpool_plugin_abi(void);
INDEXPOOL_EXPORT const struct indexpool_plugin* indexpool_plugin_table(void);

#ifdef __cplusplus
}
#endif
#endif
