// Makes the mistakes that one makes with a new library, and tells of each what kind of error it is and whether the text names
// what is wrong.
#include <clnet/clnet.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

using namespace clnet;

static void mistake(const std::string& what, const std::vector<std::string>& words, const std::function<void()>& make) {
  std::string kind, text;
  try {
    make();
    kind = "no error";
  } catch (const Error& e) {
    kind = dynamic_cast<const ShapeError*>(&e)    ? "ShapeError"
           : dynamic_cast<const DtypeError*>(&e)  ? "DtypeError"
           : dynamic_cast<const FileError*>(&e)   ? "FileError"
           : dynamic_cast<const DeviceError*>(&e) ? "DeviceError"
           : dynamic_cast<const Unsupported*>(&e) ? "Unsupported"
                                                  : "Error";
    text = e.what();
  }
  std::cout << what << ": " << kind;
  for (const auto& word : words) std::cout << (text.find(word) == std::string::npos ? ", DOES NOT NAME " : ", names ") << word;
  std::cout << '\n';
}

int main() {
  const auto a = zeros({2, 3}), b = zeros({4, 5});
  auto net = nn::Sequential{nn::Linear{3, 4}, relu, nn::Linear{4, 2}};
  const auto folder = std::filesystem::temp_directory_path() / ("errors-" + std::to_string(getpid()));
  const auto file = folder / "weights.safetensors";
  std::filesystem::create_directory(folder);
  const auto write = [&](const std::string& header, std::size_t data) {
    std::ofstream out(file, std::ios::binary);
    const std::uint64_t length = header.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length) << header << std::string(data, '\0');
  };
  const auto load = [&] { io::load_safetensors(file); };

  mistake("product", {"matmul", "[2, 3]", "[4, 5]"}, [&] { matmul(a, b); });
  mistake("sum", {"[2, 3]", "[4, 5]"}, [&] { a + b; });
  mistake("reshape", {"reshape", "[2, 3]"}, [&] { reshape(a, {4, 2}); });
  mistake("values for a shape", {"[2, 2]"}, [] { Tensor::from({1, 2, 3}, {2, 2}); });
  mistake("row", {"element 7"}, [&] { a[7]; });
  mistake("item of many", {"[2, 3]"}, [&] { a.item(); });
  mistake("layer's input", {"in 2", "[5, 4]", "[2, 3]"}, [&] {
    nn::Sequential{nn::Linear{3, 4}, relu, nn::Linear{3, 2}}(zeros({5, 3}));
  });
  mistake("label", {"cross_entropy", "label 3", "sample 1"}, [&] { cross_entropy(a, Tensor::from({0, 3})).eval(); });
  mistake("label of a dataset", {"label 9", "sample 1"}, [] { data::from_arrays({1, 2}, {1}, {0, 9}, 3); });
  mistake("number of samples", {"3", "2"}, [] { data::from_arrays({1, 2, 3}, {1}, {0, 1}, 2); });
  mistake("no kernel_size", {"Conv2d", "kernel_size"}, [] { nn::Conv2d(1, 4, 0); });
  mistake("no in_channels", {"Conv2d", "in_channels"}, [] { nn::Conv2d(0, 4, 3); });
  mistake("no optimizer", {"optimizer"}, [&] {
    const auto dataset = data::from_arrays({1, 2, 3}, {3}, {1}, 2);
    train::fit(net, dataset, {.epochs = 1, .progress = false});
  });
  mistake("two dtypes", {"f32", "i32"}, [&] { a + zeros({2, 3}, Dtype::i32); });
  mistake("softmax of integers", {"softmax", "i64"}, [] { softmax(arange(3), 0); });
  mistake("precision", {"i32"}, [] { Autocast{Dtype::i32}; });
  mistake("no such file", {"nowhere.safetensors"}, [&] { io::load_safetensors(folder / "nowhere.safetensors"); });
  write("{}", 0);
  std::filesystem::resize_file(file, 3);
  mistake("broken file", {"weights.safetensors"}, load);
  write(R"({"fc.weight":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 8);
  mistake("file cut short", {"weights.safetensors", "fc.weight"}, load);
  write(R"({"fc.weight":{"dtype":"C64","shape":[2],"data_offsets":[0,16]}})", 16);
  mistake("unknown dtype", {"weights.safetensors", "C64"}, load);
  std::filesystem::remove_all(folder);
  mistake("weights of other names", {"0.weight", "fc.weight"}, [&] { net.load_state_dict({{"fc.weight", a}}); });
  mistake("weights of another shape", {"2.bias", "[2]", "[3]"}, [&] {
    auto other = nn::Sequential{nn::Linear{3, 4}, relu, nn::Linear{4, 3}};
    net.load_state_dict(other.state_dict());
  });
  mistake("no such parameter", {"3.weight"}, [&] { net.parameter("3.weight"); });
  mistake("no such child", {"fc"}, [&] { net.child("fc"); });
  mistake("no such head", {"fc"}, [&] { net.replace("fc", nn::Linear{4, 4}); });
  mistake("no such model", {"resnet19"}, [] { models::make("resnet19", {3, 32, 32}, 10); });
  mistake("no such optimizer", {"adamm"}, [&] { optim::make("adamm", net); });
  mistake("no such option", {"momentum"}, [&] { optim::make("adam", net, {.momentum = 0.9}); });
  mistake("no such device", {"abacus"}, [] { Device::find("abacus"); });
}
