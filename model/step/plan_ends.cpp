// What surrounds the layers: residual streams, embedding, head, stages.
#include "indexpool/model/step/planner.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {

// Two norms a layer, each with the sum into the residual stream. With several streams, besides,
// what mixes them: the map of the streams to logits (f32) and the mixing itself.
void plan_residual(Planner& p) {
  const Architecture& a = p.a;
  const std::int64_t row = a.hidden_size * bf16_bytes, streams = a.hc_mult;
  constexpr std::int64_t sites = 2;
  const std::int64_t layers = p.count;
  p.group = "norms and residuals";
  p.count = sites * layers;
  p.add("norm, residual sum", Stream{2 * row, 2 * row, Bytes(row), 0, 8 * a.hidden_size, 1});
  if (streams > 1) {
    const std::int64_t mix = (2 + streams) * streams;
    const Bytes parameters((mix * streams * a.hidden_size + mix + 3) * f32_bytes);
    p.add("hyper-connections",
          Stream{2 * streams * row + row, streams * row + row, parameters, 0,
                 2 * mix * streams * a.hidden_size + 4 * streams * a.hidden_size, 2},
          "transformers, Glm5NextTextHyperConnection: map and normalisation, then the mixing");
  }
  p.count = layers;
}

void plan_embedding(Planner& p) {
  const std::int64_t row = p.a.hidden_size * bf16_bytes;
  p.group = "embedding and head";
  p.count = 1;
  p.add("embed_tokens", Stream{row, row, {}, 0, 0, 1});
  p.all_reduce(p.a.hidden_size);
}

void plan_head(Planner& p) {
  const Architecture& a = p.a;
  const std::int64_t row = a.hidden_size * bf16_bytes;
  p.group = "embedding and head";
  p.add("norm", Stream{row, row, Bytes(row), 0, 4 * a.hidden_size, 1});
  // A tied head multiplies by the embedding.
  const std::vector<ParameterTensor> list =
      a.tie_word_embeddings ? embedding_parameters(a) : head_parameters(a);
  Tensors tensors(a, list, p.ranks());
  p.add("lm_head",
        tensors.product(tensors.take(a.tie_word_embeddings ? "embed_tokens" : "lm_head")));
  if (p.ranks() > 1) {
    p.group = "collectives";
    p.add("all-gather of token logits",
          Collective{CollectiveKind::all_gather, p.ranks(),
                     divided_up(a.vocab_size, p.ranks()) * bf16_bytes});
    p.group = "embedding and head";
  }
  p.add("sampling", Stream{a.vocab_size * (bf16_bytes + f32_bytes),
                           a.vocab_size * f32_bytes,
                           {},
                           0,
                           4 * a.vocab_size,
                           2});
}

void plan_stages(Planner& p) {
  const std::int64_t stages = p.serving.request.pipeline_parallel;
  if (stages == 1) return;
  p.group = "collectives";
  p.count = stages - 1;
  p.add("send to the next stage",
        Collective{CollectiveKind::send, 2, p.a.hc_mult * p.a.hidden_size * bf16_bytes});
}

}  // namespace indexpool::step
