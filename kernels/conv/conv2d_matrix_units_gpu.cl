// Convolution and its gradients of f16 and bf16 by units that multiply small matrices, sums in f32.
#include "matrix_units.clh"
#define CONV2D_GPU conv2d_matrix_units_gpu
#include "conv2d_gpu.clh"
