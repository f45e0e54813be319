// A network in the middle of a program's own OpenCL code: its context, its queue, its buffers; nothing goes through the host.
#define CL_TARGET_OPENCL_VERSION 120
#include <clnet/clnet.h>
#include <clnet/opencl.h>

#include <exception>
#include <iostream>
#include <stdexcept>
#include <vector>

using namespace clnet;

namespace {

void check(cl_int code) {
  if (code != CL_SUCCESS) throw std::runtime_error("OpenCL error " + std::to_string(code));
}

}  // namespace

int main() try {
  // What the program has already. Here it takes the device that clnet would; any other will do.
  cl_device_id device_id = opencl::device_id(Device::current());
  cl_int code = 0;
  cl_context context = clCreateContext(nullptr, 1, &device_id, nullptr, nullptr, &code);
  check(code);
  cl_command_queue queue = clCreateCommandQueue(context, device_id, 0, &code);
  check(code);
  std::vector<float> image(28 * 28, 0.5f), scores(10);
  cl_mem input = clCreateBuffer(context, CL_MEM_READ_WRITE, image.size() * sizeof(float), nullptr, &code);
  check(code);
  check(clEnqueueWriteBuffer(queue, input, CL_FALSE, 0, image.size() * sizeof(float), image.data(), 0, nullptr, nullptr));

  {
    const Device device = opencl::wrap(context, device_id, queue);
    Device::set_default(device);
    auto model = nn::Sequential{nn::Conv2d(1, 8, 3), relu, nn::MaxPool2d(2), nn::Flatten(), nn::Linear(8 * 13 * 13, 10)};
    const Tensor x = opencl::from_buffer(device, input, {{1, 1, 28, 28}, Dtype::f32});
    const auto result = opencl::buffer(softmax(model(x), 1));
    // On the same queue, so it comes after the network.
    check(clEnqueueReadBuffer(queue, result.memory, CL_TRUE, result.offset, scores.size() * sizeof(float), scores.data(), 0,
                              nullptr, nullptr));
  }
  float sum = 0;
  for (const float score : scores) sum += score;
  std::cout << "probabilities add up to " << sum << '\n';

  clReleaseMemObject(input);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
} catch (const std::exception& error) {
  std::cerr << "own_opencl: " << error.what() << '\n';
  return 1;
}
