// Recurrent networks and attention. Parameters are inputs of a case: those of a module stand in for them.
#include <algorithm>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

/// The module with the parameters that the case has under their names, dots being underscores there.
template <class M>
void load_parameters(const Given& in, M& module, Results& results) {
  io::StateDict state;
  for (const auto& [name, parameter] : module.parameters()) {
    auto key = name;
    std::replace(key.begin(), key.end(), '.', '_');
    if (!in[key].defined()) throw Failed("there is no input " + key);
    state.emplace_back(name, in[key]);
  }
  module.load_state(state);
  for (const auto& [name, parameter] : module.parameters()) {
    auto key = name;
    std::replace(key.begin(), key.end(), '.', '_');
    results.stand_ins[key] = parameter.value();
  }
}

Results rnn_case(const Given& in) {
  const auto kind = in.text("kind", "");
  const bool is_relu = kind == "RNN_RELU" || in.text("nonlinearity", "tanh") == "relu";
  const nn::RecurrentOptions options{.input_size = in.integer("input_size", 1),
                                     .hidden_size = in.integer("hidden_size", 1),
                                     .num_layers = in.integer("layers", 1),
                                     .nonlinearity = is_relu ? Nonlinearity::relu : Nonlinearity::tanh,
                                     .bias = in["bias_ih_l0"].defined(),
                                     .batch_first = in.flag("batch_first"),
                                     .bidirectional = in.flag("bidirectional"),
                                     .proj_size = in.integer("proj_size", 0)};
  Results results;
  if (kind == "LSTM") {
    nn::LSTM layer(options);
    load_parameters(in, layer, results);
    const auto result = layer(in["x"], LstmState{in["h0"], in["c0"]}, in["lengths"]);
    results.outputs = {{"y", result.output}, {"hn", result.h}, {"cn", result.c}};
    return results;
  }
  const auto run = [&](auto layer) {
    load_parameters(in, layer, results);
    const auto result = layer(in["x"], in["h0"], in["lengths"]);
    results.outputs = {{"y", result.output}, {"hn", result.h}};
  };
  if (kind == "GRU")
    run(nn::GRU(options));
  else if (kind == "RNN" || kind == "RNN_TANH" || kind == "RNN_RELU")
    run(nn::RNN(options));
  else
    throw Failed("unknown kind " + kind);
  return results;
}

Results attention_case(const Given& in) {
  AttentionOptions options{.mask = in["mask"].defined() ? in["mask"] : in["attn_mask"], .causal = in.flag("causal")};
  if (const auto scale = in.attributes.find("scale"); scale != in.attributes.end() && scale->is_number())
    options.scale = scale->get<double>();
  return y(scaled_dot_product_attention(in["q"], in["k"], in["v"], options));
}

nn::TransformerLayerOptions layer_options(const Given& in) {
  const auto activation = in.text("activation", "relu");
  if (activation != "relu" && activation != "gelu") throw Failed("unknown activation " + activation);
  return {.dim_feedforward = in.integer("ff", 2048),
          .dropout = 0,
          .activation = activation == "gelu" ? nn::TransformerActivation::gelu : nn::TransformerActivation::relu,
          .layer_norm_eps = in.number("eps", 1e-5),
          .batch_first = in.flag("batch_first"),
          .norm_first = in.flag("norm_first")};
}

Results encoder_layer_case(const Given& in) {
  nn::TransformerEncoderLayer layer(in.integer("d_model", 1), in.integer("heads", 1), layer_options(in));
  Results results;
  load_parameters(in, layer, results);
  results.outputs["y"] = layer(in["x"], {.attn_mask = in["mask"], .is_causal = in.flag("causal")});
  return results;
}

Results decoder_layer_case(const Given& in) {
  nn::TransformerDecoderLayer layer(in.integer("d_model", 1), in.integer("heads", 1), layer_options(in));
  Results results;
  load_parameters(in, layer, results);
  results.outputs["y"] = layer(in["x"], in["memory"], {.attn_mask = in["mask"], .is_causal = in.flag("causal")});
  return results;
}

Results multihead_attention_case(const Given& in) {
  nn::MultiheadAttention layer(in.integer("embed_dim", in.integer("d_model", 1)), in.integer("heads", 1),
                               {.bias = in["in_proj_bias"].defined(), .batch_first = in.flag("batch_first")});
  Results results;
  load_parameters(in, layer, results);
  const auto query = in["x"].defined() ? in["x"] : in["q"];
  const auto key = in["k"].defined() ? in["k"] : query, value = in["v"].defined() ? in["v"] : key;
  results.outputs["y"] = layer(query, key, value, {.attn_mask = in["mask"], .is_causal = in.flag("causal")});
  return results;
}

}  // namespace

void add_sequences(Operations& operations) {
  operations["rnn"] = rnn_case;
  operations["sdpa"] = operations["scaled_dot_product_attention"] = attention_case;
  operations["transformer_encoder_layer"] = encoder_layer_case;
  operations["transformer_decoder_layer"] = decoder_layer_case;
  operations["multihead_attention"] = multihead_attention_case;
}

}  // namespace clnet::torch
