// Engine::embed: texts to token ids, cut, batched, pooled.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/engine_parts.h"
#include "generate/embed.h"

namespace liuli {
namespace {

// The first tokens of a text, and after them what closes every text ([SEP], EOS).
std::vector<int> cut(const Tokenizer& tokenizer, const std::string& text, std::vector<int> ids,
                     size_t limit) {
  const std::vector<int> body = tokenizer.encode(text, false, false);
  const size_t specials = ids.size() - std::min(ids.size(), body.size());
  size_t before = 0;
  while (before < specials &&
         !std::equal(body.begin(), body.end(), ids.begin() + static_cast<ptrdiff_t>(before)))
    before++;
  const size_t after = std::min(specials - before, limit);
  ids.erase(ids.begin() + static_cast<ptrdiff_t>(limit - after), ids.end() - static_cast<ptrdiff_t>(after));
  return ids;
}

// How many texts from `first` on run together.
size_t batch_length(std::span<const std::vector<int>> texts, size_t first, int batch_tokens) {
  size_t n = 1, tokens = texts[first].size();
  for (; first + n < texts.size(); n++) {
    tokens += texts[first + n].size();
    if (tokens > static_cast<size_t>(std::max(0, batch_tokens))) break;
  }
  return n;
}

void check_limit(int asked, int64_t longest) {
  if (asked < 0 || asked > longest)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("max_tokens is {}, expected 1…{} (0: the model's own limit)", asked, longest));
}

}  // namespace

const char* to_string(Pooling pooling) {
  switch (pooling) {
    case Pooling::unstated:
      return "unstated";
    case Pooling::mean:
      return "mean";
    case Pooling::cls:
      return "cls";
    case Pooling::last:
      return "last";
  }
  return "?";
}

Pooling pooling_from(const std::string& name) {
  for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last})
    if (name == to_string(pooling)) return pooling;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("pooling is \"{}\", expected mean, cls or last", name));
}

double cosine_similarity(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("vectors of {} and {} values have no cosine", a.size(), b.size()));
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); i++) {
    dot += double{a[i]} * double{b[i]};
    aa += double{a[i]} * double{a[i]};
    bb += double{b[i]} * double{b[i]};
  }
  return aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
}

EmbedPlan Engine::embed_plan(const EmbedSettings& settings) const {
  const ModelConfig& c = config();
  const EmbeddingDefaults& own = parts_->embedding;
  if (c.is_encoder_decoder())
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: a {} model has two towers; vectors come from models with one", parts_->path,
                            c.family));
  if (!own.problem.empty() && settings.pooling == Pooling::unstated)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: {}, which Liuli does not do; choose mean, cls or last with --pooling",
                            parts_->path, own.problem));
  check_limit(settings.max_tokens, c.max_seq_len);
  EmbedPlan plan;
  for (const Pooling choice :
       {settings.pooling, own.pooling, c.pooling, c.causal ? Pooling::last : Pooling::mean})
    if (choice != Pooling::unstated) {
      plan.pooling = choice;
      break;
    }
  plan.normalise = settings.normalise.value_or(own.normalise);
  const int64_t limit = own.max_tokens > 0 ? std::min(own.max_tokens, c.max_seq_len) : c.max_seq_len;
  plan.max_tokens = settings.max_tokens > 0 ? settings.max_tokens : static_cast<int>(limit);
  return plan;
}

std::vector<Embedding> Engine::embed_ids(std::span<const std::vector<int>> texts,
                                         const EmbedSettings& settings) {
  const EmbedPlan plan = embed_plan(settings);
  for (const std::vector<int>& text : texts) parts_->check_tokens(text, 0, config().max_seq_len);
  std::vector<Embedding> embeddings;
  for (size_t first = 0; first < texts.size();) {
    const auto batch = texts.subspan(first, batch_length(texts, first, settings.batch_tokens));
    auto vectors = embed_texts(*parts_->model, *parts_->runner, parts_->classes.prompt, batch, plan.pooling);
    for (size_t i = 0; i < batch.size(); i++) {
      if (plan.normalise) normalise_length(vectors[i]);
      embeddings.push_back({std::move(vectors[i]), static_cast<int>(batch[i].size()), false});
    }
    first += batch.size();
    if (settings.on_progress)
      settings.on_progress(static_cast<int64_t>(first), static_cast<int64_t>(texts.size()));
  }
  return embeddings;
}

std::vector<Embedding> Engine::embed(std::span<const std::string> texts, const EmbedSettings& settings) {
  const auto limit = static_cast<size_t>(embed_plan(settings).max_tokens);
  std::vector<std::vector<int>> ids;
  std::vector<bool> too_long;
  for (const std::string& text : texts) {
    std::vector<int> whole = tokenize(text);
    if (whole.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("text {} has no tokens", ids.size() + 1));
    too_long.push_back(whole.size() > limit);
    ids.push_back(too_long.back() ? cut(*parts_->tokenizer, text, std::move(whole), limit)
                                  : std::move(whole));
  }
  std::vector<Embedding> embeddings = embed_ids(ids, settings);
  for (size_t i = 0; i < embeddings.size(); i++) embeddings[i].cut = too_long[i];
  return embeddings;
}

}  // namespace liuli
