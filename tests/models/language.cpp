// Language models through the API: reading character by character, writing, training with fit().
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "clnet/clnet.h"
#include "tests/models/sentences.h"
#include "tests/support/temporary.h"

using namespace clnet;
using Catch::Contains;

namespace {

models::CharGpt small_gpt(std::int64_t classes) {
  manual_seed(3);
  return models::CharGpt{classes, {.layers = 2, .width = 16, .heads = 2, .context = 8}};
}
models::CharLstm small_lstm(std::int64_t classes) {
  manual_seed(3);
  return models::CharLstm{classes, {.embedding = 8, .hidden = 12}};
}

/// What forward() says of the character behind all of these.
std::vector<float> behind(nn::Module& model, const std::vector<std::int32_t>& characters) {
  const auto length = static_cast<std::int64_t>(characters.size());
  return flatten(slice(model(Tensor::from(characters, {1, length})), 1, length - 1, length)).to_vector<float>();
}

void require_near(const std::vector<float>& got, const std::vector<float>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-5));
}

/// Reads in pieces of these sizes, and compares with forward() after each.
void read_in_pieces(models::LanguageModel& model, const std::vector<std::size_t>& sizes) {
  const auto read = model.reader();
  std::vector<std::int32_t> all;
  for (const auto size : sizes) {
    std::vector<std::int32_t> piece(size);
    for (auto& c : piece) c = static_cast<std::int32_t>((7 * all.size() + static_cast<std::size_t>(&c - piece.data()) * 3) % 5);
    all.insert(all.end(), piece.begin(), piece.end());
    require_near(read(piece).to_vector<float>(), behind(model, all));
  }
}

std::vector<std::vector<float>> values(const nn::Module& model) {
  std::vector<std::vector<float>> result;
  for (const auto& [name, tensor] : model.state_dict()) result.push_back(tensor.to_vector<float>());
  return result;
}

}  // namespace

TEST_CASE("language models: reading on gives what forward() gives of the whole") {
  auto gpt = small_gpt(5);
  read_in_pieces(gpt, {1, 1, 3, 1, 2});
  read_in_pieces(gpt, {4});
  auto lstm = small_lstm(5);
  read_in_pieces(lstm, {1, 1, 3, 1, 9});
}

TEST_CASE("language models: a full context begins anew with its last half") {
  auto gpt = small_gpt(5);
  const auto read = gpt.reader();
  const std::vector<std::int32_t> first{0, 1, 2, 3, 4, 0, 2, 4};
  require_near(read(first).to_vector<float>(), behind(gpt, first));
  require_near(read(std::vector<std::int32_t>{1}).to_vector<float>(), behind(gpt, {0, 2, 4, 1}));
  require_near(read(std::vector<std::int32_t>{3, 3}).to_vector<float>(), behind(gpt, {0, 2, 4, 1, 3, 3}));
  // More at once than fit.
  require_near(gpt.reader()(std::vector<std::int32_t>(9, 2)).to_vector<float>(), behind(gpt, {2, 2, 2, 2}));
}

TEST_CASE("language models: shapes and characters that cannot be") {
  auto gpt = small_gpt(5);
  CHECK_THROWS_WITH(gpt(zeros({2, 9}, Dtype::i32)), Contains("longer than its context of 8"));
  CHECK_THROWS_WITH(gpt(zeros({2}, Dtype::i32)), Contains("{n, length}"));
  CHECK_THROWS_WITH(gpt.reader()({}), Contains("nothing to read"));
  CHECK_THROWS_WITH(gpt.reader()(std::vector<std::int32_t>{5}), Contains("character 5 is not one of 5"));
  CHECK_THROWS_WITH(small_lstm(5).reader()(std::vector<std::int32_t>{-1}), Contains("character -1"));
  CHECK_THROWS_WITH(models::make("char-gpt", {1, 28, 28}, 10), Contains("needs a text"));
  CHECK_THROWS_WITH(models::make("cnn", {64}, 10), Contains("needs images"));
  CHECK_THROWS_WITH(models::make_language_model("cnn", 64, 10), Contains("char-gpt"));
  CHECK(models::is_language_model("char-lstm"));
  CHECK_FALSE(models::is_language_model("cnn"));
}

TEST_CASE("language models: the reference shapes, with PyTorch's names") {
  const auto gpt = models::make("char-gpt", {64}, 65), lstm = models::make("char-lstm", {64}, 65);
  CHECK(gpt->parameter_count() == 818241);
  CHECK(lstm->parameter_count() == 280897);
  CHECK(gpt->parameter("encoder.layers.3.self_attn.in_proj_weight").value().shape() == Shape{384, 128});
  CHECK(gpt->parameter("positions.weight").value().shape() == Shape{64, 128});
  CHECK(lstm->parameter("lstm.weight_hh_l1").value().shape() == Shape{512, 128});
  // Before training, all characters are about as likely.
  const auto loss = cross_entropy(flatten((*gpt)(zeros({1, 4}, Dtype::i32)), 0, 1), zeros({4}, Dtype::i32)).item<double>();
  CHECK(loss == Approx(std::log(65)).epsilon(0.1));
}

TEST_CASE("generate: seeds, temperatures, and what it refuses") {
  auto gpt = small_gpt(5);
  const std::vector<std::int32_t> prompt{0, 3};
  const auto before = random_state();
  const auto a = models::generate(gpt, prompt, {.count = 30, .seed = 1});
  CHECK(a.size() == 30);
  CHECK(a == models::generate(gpt, prompt, {.count = 30, .seed = 1}));
  CHECK(a != models::generate(gpt, prompt, {.count = 30, .seed = 2}));
  CHECK(random_state().offset == before.offset);
  CHECK(gpt.training());

  const auto likeliest = models::generate(gpt, prompt, {.count = 1, .temperature = 0});
  const auto logits = behind(gpt, prompt);
  CHECK(likeliest.at(0) == std::max_element(logits.begin(), logits.end()) - logits.begin());
  CHECK(models::generate(gpt, prompt, {.count = 12, .temperature = 1e-9}) ==
        models::generate(gpt, prompt, {.count = 12, .temperature = 0}));
  CHECK(models::generate(gpt, prompt, {.count = 12, .top_k = 1}) ==
        models::generate(gpt, prompt, {.count = 12, .temperature = 0}));
  CHECK(models::generate(gpt, prompt, {.count = 12, .top_p = 1e-9}) ==
        models::generate(gpt, prompt, {.count = 12, .temperature = 0}));
  CHECK(models::generate(gpt, prompt, {.count = 0}).empty());

  std::vector<std::int32_t> heard;
  const auto some = models::generate(gpt, prompt, {.count = 30, .seed = 1, .on_character = [&](std::int32_t c) {
                                                     heard.push_back(c);
                                                     return heard.size() < 4;
                                                   }});
  CHECK(some.size() == 4);
  CHECK(some == heard);

  CHECK(models::generate(gpt, "abcde", "ad", {.count = 30, .seed = 1}).size() == 30);
  CHECK_THROWS_WITH(models::generate(gpt, "abcd", "a"), Contains("4 characters for a model of 5"));
  CHECK_THROWS_WITH(models::generate(gpt, "abcde", "x"), Contains("'x'"));
  CHECK_THROWS_WITH(models::generate(gpt, "abcde", ""), Contains("nothing to read"));
  CHECK_THROWS_WITH(models::generate(gpt, prompt, {.count = -1}), Contains("count"));
  CHECK_THROWS_WITH(models::generate(gpt, prompt, {.temperature = -1}), Contains("temperature"));
  CHECK_THROWS_WITH(models::generate(gpt, prompt, {.temperature = NAN}), Contains("temperature"));
  CHECK_THROWS_WITH(models::generate(gpt, prompt, {.top_k = -1}), Contains("generate: top_k must be a number from 0, not -1"));
  CHECK_THROWS_WITH(models::generate(gpt, prompt, {.top_p = 2}),
                    Contains("generate: top_p must be above 0 and at most 1, not 2"));
  gpt.parameter("fc.bias").set(full({5}, NAN));
  CHECK_THROWS_WITH(models::generate(gpt, prompt), Contains("no finite numbers"));
}

TEST_CASE("generate: parts keep their modes") {
  models::CharGpt gpt{5, {.layers = 1, .width = 8, .heads = 2, .context = 8, .dropout = 0.5}};
  gpt.child("encoder").inference();
  models::generate(gpt, std::vector<std::int32_t>{1}, {.count = 2});
  CHECK(gpt.training());
  CHECK_FALSE(gpt.child("encoder").training());
}

TEST_CASE("language models: replaced layers are read with, too") {
  const nn::TransformerLayerOptions options{.dim_feedforward = 16, .dropout = 0, .batch_first = true};
  const std::vector<std::int32_t> characters{1, 4, 0};
  auto gpt = small_gpt(5);
  auto before = behind(gpt, characters);
  const auto changes = [&](const std::string& name, const nn::Step& layer) {
    INFO(name);
    gpt.replace(name, layer);
    const auto after = behind(gpt, characters);
    CHECK(after != before);
    before = after;
    read_in_pieces(gpt, {2, 1, 3});
  };
  changes("fc", nn::Linear{16, 5});
  changes("encoder.layers.1.self_attn", nn::MultiheadAttention{16, 4, {.batch_first = true}});
  changes("encoder.layers.0", nn::TransformerEncoderLayer{16, 4, options});
  changes("encoder", nn::TransformerEncoder{16, 2, 3, options});
}

TEST_CASE("generate: among equal logits all characters come about as often") {
  auto lstm = small_lstm(4);
  for (auto& [name, parameter] : lstm.parameters()) parameter.set(zeros(parameter.value().shape()));
  std::vector<int> counts(4);
  for (const auto c : models::generate(lstm, std::vector<std::int32_t>{0}, {.count = 400, .temperature = 1}))
    ++counts.at(static_cast<std::size_t>(c));
  for (const int count : counts) CHECK(std::abs(count - 100) < 45);  // 5 standard deviations
}

TEST_CASE("fit: learns a text, and a run in pieces gives the numbers of a whole one") {
  const auto content = clnet::test::sentences(3000);
  const auto alphabet = data::alphabet_of(content);
  const auto text = data::from_text(std::string_view(content).substr(0, 2700), alphabet, 16),
             held_out = data::from_text(std::string_view(content).substr(2700), alphabet, 16);
  const clnet::test::Folder folder;
  const auto run = [&](std::int64_t steps, const std::string& checkpoint, std::vector<double>& losses) {
    manual_seed(3);
    models::CharGpt model{static_cast<std::int64_t>(alphabet.size()),
                          {.layers = 1, .width = 32, .heads = 2, .context = 16, .dropout = 0.1}};
    train::FitOptions options{
        .steps = steps, .batch_size = 20, .optimizer = optim::make("adamw", model, {.learning_rate = 1e-2})};
    options.validation = held_out;
    options.progress = false;
    options.checkpoint = checkpoint.empty() ? "" : (folder / checkpoint).string();
    options.resume = !checkpoint.empty();
    options.on_step = [&](std::int64_t, double loss) { losses.push_back(loss); };
    const auto result = train::fit(model, text, options);
    return std::pair(values(model), result);
  };
  std::vector<double> whole, parts;
  const auto [weights, result] = run(100, "", whole);
  CHECK(whole.front() > 2.5);
  CHECK(result.epochs.back().validation->loss < 0.9);
  CHECK(result.epochs.back().validation->accuracy > 0.7);
  CHECK(result.epochs.back().validation->accuracy <= 1);
  for (const std::int64_t steps : {13, 40, 100}) run(steps, "run", parts);
  CHECK(parts == whole);
}
