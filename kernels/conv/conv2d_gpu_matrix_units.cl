// Convolution and its gradients of f16 and bf16 by units that multiply small matrices, sums in f32.
#include "matrix_units.clh"
#define CONV2D_GPU conv2d_gpu_matrix_units
#include "conv2d_gpu.clh"
