// Items of clnet-bench beyond images: recurrences, language models, a vision transformer, a U-Net, lines and volumes, latency.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "clnet/clnet.h"
#include "tools/bench_items.h"
#include "tools/bench_ranks.h"
#include "tools/bench_tables.h"

namespace clnet::bench {

namespace {

std::vector<Tensor> parameters_of(const nn::Module& model) {
  std::vector<Tensor> result;
  for (const auto& [name, parameter] : model.parameters()) result.push_back(parameter);
  return result;
}

/// The outputs of a stack of recurrent layers, or their parameters' gradients, too.
Item recurrent(const Recurrent& r, bool gradient) {
  constexpr std::int64_t steps = 64, batch = 32;
  // Products with the input and with the state; the first input needs no gradient.
  const double layer = 4.0 * static_cast<double>(steps * batch * r.gates * r.hidden * r.hidden);
  const double flops = gradient ? 5.5 * layer : 2 * layer;
  return {fmt::format("{}-{}-{}-b{}", r.name, r.hidden, gradient ? "gradient" : "forward", batch),
          flops,
          "FLOP",
          flops,
          0,
          [=]() -> Run {
            std::shared_ptr<nn::Module> model;
            if (r.gates == 4)
              model = std::make_shared<nn::LSTM>(r.hidden, r.hidden, 2);
            else
              model = std::make_shared<nn::GRU>(r.hidden, r.hidden, 2);
            const Tensor x = rand({steps, batch, r.hidden});
            x.eval();
            return [=] {
              const Tensor y = (*model)(x);
              if (!gradient) return y.eval();
              eval(gradients(sum(y), parameters_of(*model)));
            };
          }};
}

/// Two layers of LSTM written from operations, step by step, as users write recurrences of their own; with the gradients of all
/// weights.
Item recurrence_by_hand(bool compiled) {
  constexpr std::int64_t steps = 200, batch = 32, hidden = 128;
  const double flops = 5.5 * 4.0 * static_cast<double>(steps * batch * 4 * hidden * hidden);
  const auto all_gradients = [](const Tensor& x, const std::vector<Tensor>& weights) {
    Tensor total = zeros({});
    std::vector<Tensor> h(2, zeros({batch, hidden})), c = h;
    for (std::int64_t t = 0; t < steps; ++t) {
      Tensor y = x[t];
      for (std::size_t layer = 0; layer < 2; ++layer) {
        const auto gates = split(matmul(concat({y, h[layer]}, 1), weights[2 * layer]) + weights[2 * layer + 1],
                                 {hidden, hidden, hidden, hidden}, 1);
        c[layer] = sigmoid(gates[1]) * c[layer] + sigmoid(gates[0]) * tanh(gates[2]);
        y = h[layer] = sigmoid(gates[3]) * tanh(c[layer]);
      }
      total = total + sum(y);
    }
    return gradients(total, weights);
  };
  return {fmt::format("lstm-by-hand-{}-t{}-b{}{}", hidden, steps, batch, compiled ? "-compiled" : ""),
          flops,
          "FLOP",
          flops,
          0,
          [=]() -> Run {
            std::vector<Tensor> weights;
            for (int layer = 0; layer < 2; ++layer) {
              weights.push_back(rand({2 * hidden, 4 * hidden}) * 0.1 - 0.05);
              weights.push_back(zeros({4 * hidden}));
            }
            for (auto& weight : weights) weight = weight.detach();
            const Tensor x = rand({steps, batch, hidden});
            x.eval();
            if (!compiled) return [=] { eval(all_gradients(x, weights)); };
            const auto call =
                compile([=](const Tensor& of, const Tensor& w0, const Tensor& b0, const Tensor& w1, const Tensor& b1) {
                  return all_gradients(of, {w0, b0, w1, b1});
                });
            return [=] { eval(call(x, weights[0], weights[1], weights[2], weights[3])); };
          }};
}

constexpr std::int64_t alphabet = 65;

/// Multiply-adds of models::CharGpt for a character.
double char_gpt_macs(const models::CharGptOptions& o) {
  return static_cast<double>(o.layers * (12 * o.width * o.width + 2 * o.context * o.width) + o.width * alphabet);
}

/// A step of AdamW, from characters in the host's memory; products in f16 where `dtype` says so.
Item char_gpt_training(std::int64_t batch, Dtype dtype) {
  const models::CharGptOptions options;
  const auto context = options.context;
  const double work = 3 * 2 * char_gpt_macs(options) * static_cast<double>(batch * context);
  const auto suffix = dtype == Dtype::f32 ? "" : fmt::format("-{}", to_string(dtype));
  return {fmt::format("char-gpt-train-b{}{}", batch, suffix), work, "FLOP", work, 0, [=]() -> Run {
            const auto model = std::make_shared<models::CharGpt>(alphabet, options);
            const auto optimizer = std::make_shared<optim::AdamW>(*model);
            add_gradients_of_ranks(*optimizer);
            std::vector<std::int64_t> x(static_cast<std::size_t>(batch * context)), next(x.size());
            for (std::size_t i = 0; i < x.size(); ++i) {
              x[i] = static_cast<std::int64_t>(i * i % alphabet);
              next[i] = static_cast<std::int64_t>((i + 1) * (i + 1) % alphabet);
            }
            return [=] {
              Tensor loss;
              {
                const Autocast products(dtype);
                const auto logits = (*model)(Tensor::from(x, {batch, context}));
                loss = cross_entropy(flatten(logits, 0, 1), Tensor::from(next, {batch * context}));
              }
              optimizer->step(loss);
            };
          }};
}

/// As many characters as the context holds, each the likeliest, read by the host before the next.
Item char_gpt_generation() {
  const models::CharGptOptions options;
  const auto count = static_cast<double>(options.context);
  const double flops = 2 * char_gpt_macs(options) * count;
  return {"char-gpt-generate-b1", count, "character", flops, 0, [=]() -> Run {
            const auto model = std::make_shared<models::CharGpt>(alphabet, options);
            model->inference();
            return [=] {
              const auto read = model->reader();
              std::int32_t character = 0;
              for (std::int64_t i = 0; i < options.context; ++i)
                character = argmax(read(std::span(&character, 1)), 0).item<std::int32_t>();
            };
          }};
}

/// What examples/translation.cpp trains: a Transformer with encoder and decoder, for lines of eight words.
struct Translator : nn::Module {
  static constexpr std::int64_t width = 32, layers = 2, length = 8, words = 32;
  nn::Embedding source{words, width}, target{words, width};
  nn::Transformer transformer{width, 4, layers, layers, {.dim_feedforward = 4 * width, .dropout = 0, .batch_first = true}};
  nn::Linear head{width, words};
  Tensor positions = sinusoidal_positions(length, width);

  Translator() {
    add("source", source);
    add("target", target);
    add("transformer", transformer);
    add("head", head);
  }
  Tensor operator()(const Tensor& from, const Tensor& to) {
    const nn::AttentionMasks padding{.key_padding_mask = eq(from, 0)};
    return head(transformer(source(from) + positions, target(to) + positions,
                            {.source = padding, .target = {.is_causal = true}, .memory = padding}));
  }
};

/// A step of AdamW on sentences in the host's memory, of which the last word is padding.
Item translation_training() {
  constexpr std::int64_t batch = 64, width = Translator::width, length = Translator::length, words = Translator::words;
  // Of each word: products of attention and of what follows it in a layer of the encoder and one of the decoder, then the head.
  constexpr double macs = Translator::layers * (12.0 + 16.0) * width * width + Translator::layers * 6.0 * length * width +
                          static_cast<double>(width * words);
  constexpr double work = 3 * 2 * macs * batch * length;
  return {"translation-train-b64", work, "FLOP", work, 0, []() -> Run {
            const auto model = std::make_shared<Translator>();
            const auto optimizer = std::make_shared<optim::AdamW>(*model, optim::AdamWOptions{.clip_norm = 1});
            add_gradients_of_ranks(*optimizer);
            std::vector<std::int64_t> from(batch * length), to(from.size()), next(from.size());
            for (std::size_t i = 0; i < from.size(); ++i) {
              const bool last = i % length == length - 1;
              from[i] = last ? 0 : 1 + static_cast<std::int64_t>(i * i % (words - 1));
              to[i] = 1 + static_cast<std::int64_t>(i % (words - 1));
              next[i] = last ? 0 : 1 + static_cast<std::int64_t>((i + 1) % (words - 1));
            }
            return [=] {
              const auto logits = (*model)(Tensor::from(from, {batch, length}), Tensor::from(to, {batch, length}));
              optimizer->step(cross_entropy(flatten(logits, 0, 1), Tensor::from(next, {batch * length}), {.ignore_index = 0}));
            };
          }};
}

/// 64 words behind a memory of 64, the likeliest each time, which the host reads before the next: with caches, or (anew) encoding
/// the source and decoding a whole line for each word, as who has no caches does.
Item translation_decoding(std::int64_t batch, bool anew) {
  constexpr std::int64_t width = 256, heads = 4, layers = 3, words = 1024, length = 64;
  struct Wide : nn::Module {
    nn::Embedding source{words, width}, target{words, width};
    nn::Transformer transformer{width, heads, layers, layers, {.dim_feedforward = 4 * width, .dropout = 0, .batch_first = true}};
    nn::PositionalEncoding positions{width, {.dropout = 0, .max_length = length}};
    nn::Linear head{width, words};
    Wide() {
      add("source", source);
      add("target", target);
      add("transformer", transformer);
      add("positions", positions);
      add("head", head);
      inference();
    }
  };
  const auto count = static_cast<double>(batch * length);
  return {
      fmt::format("transformer-decode-t{}-b{}{}", length, batch, anew ? "-anew" : ""), count, "word", 0, 0, [=]() -> Run {
        const auto model = std::make_shared<Wide>();
        const auto from = Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(batch * length), 7), {batch, length});
        const auto encode = [=] { return model->transformer.encode(model->positions(model->source(from))); };
        const auto first = Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(batch), 1));
        const auto write = [=](const decode::StepFunction& step) {
          (void)decode::greedy(step, first, {.max_new_tokens = length});
        };
        if (!anew)
          return [=] {
            auto caches = model->transformer.caches(encode(), length);
            write([&](const Tensor& tokens) {
              const auto x = model->positions(model->target(tokens), caches.front().target.length);
              return model->head(model->transformer.step(x, caches));
            });
          };
        return [=] {
          Tensor line = zeros({batch, length}, Dtype::i64);
          std::int64_t at = 0;
          write([&](const Tensor& tokens) {
            line = slice_update(line, 1, at, tokens).detach();
            const auto y = model->transformer.decode(model->positions(model->target(line)), encode(), {.is_causal = true});
            return model->head(narrow(y, 1, at++, 1));
          });
        };
      }};
}

/// A step of Adam on three layers of LSTM and a head, on sequences in the host's memory.
Item deep_lstm_step() {
  constexpr std::int64_t layers = 3, width = 500, steps = 32, batch = 32;
  constexpr double work = 3 * 2 * 8.0 * layers * width * width * steps * batch;
  struct Deep : nn::Module {
    nn::LSTM lstm{width, width, layers};
    nn::Linear head{width, 1};
    Deep() {
      add("lstm", lstm);
      add("head", head);
    }
    Tensor forward(const Tensor& x) override { return head(slice(lstm(x), 0, -1)); }
  };
  return {"lstm-3x500-step-b32", work, "FLOP", work, 0, []() -> Run {
            const auto model = std::make_shared<Deep>();
            const auto optimizer = std::make_shared<optim::Adam>(*model);
            add_gradients_of_ranks(*optimizer);
            const std::vector<float> x(static_cast<std::size_t>(steps * batch * width), 0.5F);
            return [=] {
              const auto y = (*model)(Tensor::from(x, {steps, batch, width}));
              optimizer->step(mse_loss(y, ones(y.shape())));
            };
          }};
}

/// Causal attention of one new position to all before it, whose keys and values are in a cache with room for a whole context.
Item attention_steps() {
  constexpr std::int64_t width = 768, heads = 12, capacity = 1024, steps = 64;
  constexpr double macs = 4.0 * width * width + 2.0 * capacity * width;
  return {"attention-step-768-t1024-b1", steps, "position", 2 * macs * steps, 0, [=]() -> Run {
            const auto layer =
                std::make_shared<nn::MultiheadAttention>(width, heads, nn::MultiheadAttentionOptions{.batch_first = true});
            layer->inference();
            const auto cache = std::make_shared<nn::KVCache>(layer->cache(1, capacity));
            const auto x = zeros({1, 1, width}).detach();
            return [=] {
              cache->length = capacity / 2;
              for (std::int64_t i = 0; i < steps; ++i) (void)sum(layer->step(x, *cache)).item<float>();
            };
          }};
}

/// ViT-Tiny (Touvron and others 2021): patches of 16, 192 wide, 12 layers of 3 heads.
struct VisionTransformer : nn::Module {
  static constexpr std::int64_t width = 192, layers = 12, patch = 16, size = 224, places = (size / patch) * (size / patch);
  nn::Conv2d patches{3, width, patch, {.stride = patch}};
  nn::Parameter token = add_parameter("token", zeros({1, 1, width}));
  nn::Parameter positions = add_parameter("positions", zeros({places + 1, width}));
  nn::TransformerEncoder encoder{width,
                                 3,
                                 layers,
                                 {.dim_feedforward = 4 * width,
                                  .dropout = 0,
                                  .activation = nn::TransformerActivation::gelu,
                                  .batch_first = true,
                                  .norm_first = true},
                                 true};
  nn::Linear head{width, 1000};

  VisionTransformer() {
    add("patches", patches);
    add("encoder", encoder);
    add("head", head);
  }
  Tensor forward(const Tensor& x) override {
    const auto seen = permute(flatten(patches(x), 2), {0, 2, 1});
    const auto all = concat({expand(token, {x.size(0), 1, width}), seen}, 1) + positions;
    return head(squeeze(narrow(encoder(all), 1, 0, 1), 1));
  }
  static double macs() {
    const auto n = static_cast<double>(places + 1), w = static_cast<double>(width);
    return static_cast<double>(layers) * (12 * n * w * w + 2 * n * n * w) + n * 3 * patch * patch * w + 1000 * w;
  }
};

Item vision_transformer(std::int64_t batch) {
  const auto count = static_cast<double>(batch);
  return {fmt::format("vit-tiny-infer-b{}", batch), count, "image", 2 * count * VisionTransformer::macs(), 0, [=]() -> Run {
            const auto model = std::make_shared<VisionTransformer>();
            model->inference();
            const std::vector<float> pixels(static_cast<std::size_t>(batch * 3 * 224 * 224), 0.5F);
            return [=] { (void)(*model)(Tensor::from(pixels, {batch, 3, 224, 224})).to_vector<float>(); };
          }};
}

/// Two convolutions with normalisation.
struct Twice : nn::Sequential {
  Twice(std::int64_t in, std::int64_t out)
      : nn::Sequential{nn::Conv2d{in, out, 3, {.padding = 1, .bias = false}},  nn::BatchNorm2d{out}, relu,
                       nn::Conv2d{out, out, 3, {.padding = 1, .bias = false}}, nn::BatchNorm2d{out}, relu} {}
};

/// Ronneberger and others 2015, padded, with normalisation: four levels from 16 channels on.
struct UNet : nn::Module {
  static constexpr std::int64_t base = 16, levels = 4;
  std::vector<Twice> down, up;
  std::vector<nn::ConvTranspose2d> wider;
  nn::Conv2d head{base, 2, 1};

  UNet() {
    for (std::int64_t level = 0; level < levels; ++level) down.emplace_back(level == 0 ? 3 : base << (level - 1), base << level);
    for (std::int64_t level = levels - 1; level-- > 0;) {
      wider.emplace_back(base << (level + 1), base << level, 2, nn::ConvTranspose2dOptions{.stride = 2});
      up.emplace_back(base << (level + 1), base << level);
    }
    for (std::size_t i = 0; i < down.size(); ++i) add(fmt::format("down{}", i), down[i]);
    for (std::size_t i = 0; i < up.size(); ++i) {
      add(fmt::format("wider{}", i), wider[i]);
      add(fmt::format("up{}", i), up[i]);
    }
    add("head", head);
  }
  Tensor forward(const Tensor& x) override {
    std::vector<Tensor> seen;
    auto y = x;
    for (auto& level : down) {
      y = level(seen.empty() ? y : max_pool2d(y, 2));
      seen.push_back(y);
    }
    for (std::size_t i = 0; i < up.size(); ++i) y = up[i](concat({seen[up.size() - 1 - i], wider[i](y)}, 1));
    return head(y);
  }
};

Item unet_training(std::int64_t batch) {
  constexpr std::int64_t size = 128;
  const auto count = static_cast<double>(batch);
  return {fmt::format("unet-128-train-b{}", batch), count, "image", 0, 0, [=]() -> Run {
            const auto model = std::make_shared<UNet>();
            const auto optimizer = std::make_shared<optim::Adam>(*model);
            add_gradients_of_ranks(*optimizer);
            const std::vector<float> pixels(static_cast<std::size_t>(batch * 3 * size * size), 0.5F);
            std::vector<std::int32_t> labels(static_cast<std::size_t>(batch * size * size));
            for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i / 7 % 2);
            return [=] {
              optimizer->step(cross_entropy((*model)(Tensor::from(pixels, {batch, 3, size, size})),
                                            Tensor::from(labels, {batch, size, size})));
            };
          }};
}

/// Convolutions of lines and volumes and transposed ones, forward, or with both gradients.
Item of_axes(const AxesConv& c, bool gradient) {
  Shape x_shape{c.n, c.in}, w_shape = c.transposed ? Shape{c.in, c.out} : Shape{c.out, c.in};
  for (int axis = 0; axis < c.axes; ++axis) {
    std::vector<std::int64_t> x_dims(x_shape.begin(), x_shape.end()), w_dims(w_shape.begin(), w_shape.end());
    x_dims.push_back(c.size);
    w_dims.push_back(c.kernel);
    x_shape = Shape(x_dims);
    w_shape = Shape(w_dims);
  }
  return {fmt::format("{}{}d-{}-{}-{}-k{}-s{}-b{}-{}", c.transposed ? "transposed" : "conv", c.axes, c.in, c.out, c.size,
                      c.kernel, c.stride, c.n, gradient ? "train" : "forward"),
          static_cast<double>(c.n),
          "sample",
          0,
          0,
          [=]() -> Run {
            const Tensor x = rand(x_shape), w = rand(w_shape);
            eval({x, w});
            const auto padding = c.kernel / 2;
            const auto compute = [=] {
              if (c.axes == 1 && !c.transposed) return conv1d(x, w, {}, {.stride = c.stride, .padding = padding});
              if (c.axes == 1) return conv_transpose1d(x, w, {}, {.stride = c.stride, .padding = padding});
              if (c.axes == 2) return conv_transpose2d(x, w, {}, {.stride = c.stride, .padding = padding});
              if (!c.transposed) return conv3d(x, w, {}, {.stride = c.stride, .padding = padding});
              return conv_transpose3d(x, w, {}, {.stride = c.stride, .padding = padding});
            };
            return [=] {
              const auto y = compute();
              if (!gradient) return y.eval();
              // The sum, too: neither gradient needs it, and the forward pass would be left out.
              const auto total = sum(y);
              auto wanted = gradients(total, {x, w});
              wanted.push_back(total);
              eval(wanted);
            };
          }};
}

/// One call with its result on the host.
Item latency(bool compiled) {
  return {compiled ? "mlp-infer-b1-compiled" : "mlp-infer-b1", 1, "call", 0, 0, [compiled]() -> Run {
            nn::Sequential model{nn::Linear{784, 256}, relu, nn::Linear{256, 128}, relu, nn::Linear{128, 10}};
            model.inference();
            const std::vector<float> x(784, 0.5F);
            const auto image = [=] { return Tensor::from(x, {1, 784}); };
            if (!compiled) return [=]() mutable { (void)model(image()).to_vector<float>(); };
            const auto call = compile(model);
            return [=] { (void)call(image()).to_vector<float>(); };
          }};
}

}  // namespace

std::vector<Item> model_items() {
  std::vector<Item> list;
  for (const auto& r : recurrents)
    for (bool gradient : {false, true}) list.push_back(recurrent(r, gradient));
  for (bool compiled : {false, true}) list.push_back(recurrence_by_hand(compiled));
  for (const auto dtype : {Dtype::f32, Dtype::f16}) list.push_back(char_gpt_training(32, dtype));
  list.push_back(char_gpt_generation());
  list.push_back(translation_training());
  for (const std::int64_t batch : {1, 8})
    for (bool anew : {false, true}) list.push_back(translation_decoding(batch, anew));
  list.push_back(deep_lstm_step());
  list.push_back(attention_steps());
  for (std::int64_t batch : {1, 8}) list.push_back(vision_transformer(batch));
  list.push_back(unet_training(4));
  for (const auto& c : axes_convs)
    for (bool gradient : {false, true}) list.push_back(of_axes(c, gradient));
  for (bool compiled : {false, true}) list.push_back(latency(compiled));
  return list;
}

}  // namespace clnet::bench
