// Convolution and its gradients on GPUs, sums and operands in registers.
#define CONV2D_GPU conv2d_gpu
#include "conv2d_gpu.clh"
