// Adds parts of products (gemm_gpu.clh) in order, and the bias: a work-item per element. c holds matrices of `size` elements that begin
// c_stride from one another; element i of all is of channel i / inner % channels.
#include "epilogue.clh"

kernel void gemm_sum_gpu(IN(x), IN(bias), OUT(c), const int has_bias, const int total, const int size, const int c_stride,
                         const int channels, const int inner, const int parts EPILOGUE_PARAMETERS) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int channel = i / inner % channels, to = i / size * c_stride + i % size;
  float sum = 0.0f;
  for (int part = 0; part < parts; ++part) sum += LOAD(x, part * total + i);
  if (has_bias) sum += LOAD(bias, channel);
  STORE(c, to, EPILOGUE(sum, to, channel));
}
