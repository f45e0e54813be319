#include <fmt/format.h>

#include <charconv>

#include "clnet/error.h"
#include "clnet/metrics.h"

namespace clnet::metrics {

Metric make(std::string_view name, std::int64_t classes) {
  if (name == "accuracy") return Accuracy();
  if (name == "precision") return Precision(classes);
  if (name == "recall") return Recall(classes);
  if (name == "f1") return F1(classes);
  if (name == "miou") return MeanIoU(classes);
  if (name == "auc") return AUC(classes);
  if (name == "perplexity") return Perplexity();
  constexpr std::string_view top = "top";
  std::int64_t k = 0;
  if (name.starts_with(top)) {
    const auto* end = name.data() + name.size();
    const auto [at, code] = std::from_chars(name.data() + top.size(), end, k);
    if (code == std::errc() && at == end && k >= 1) return TopK(k);
  }
  throw Error(fmt::format(
      "'{}' is no metric; known are accuracy, top5 or another k, precision, recall, f1, miou, auc, perplexity", name));
}

}  // namespace clnet::metrics
