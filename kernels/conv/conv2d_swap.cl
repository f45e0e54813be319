// {a, b, pixels} to {b, a, pixels}, with a bias for each a where there is one. Work-items are pixels times rows, with
// ARRAYS times arrays, one after the other. With SLICES, b are the images from `first` on.
#include "clnet.clh"
#include "conv2d_slices.clh"

kernel void conv2d_swap(IN(x),
#ifdef BIAS
                        IN(bias),
#endif
                        OUT(y), const int A, const int B, const int pixels
#ifdef SLICES
                        , const int first
#endif
                        SLICES_PARAMETER) {
  const int pixel = (int)get_global_id(0), row = (int)get_global_id(1);
  if (pixel >= pixels) return;
  const int a = row / B, b = row % B;
#ifdef ARRAYS
  const int first_row = (int)get_global_id(2) * A * B;
#else
  const int first_row = 0;
#endif
  float value = LOAD(x, (first_row + row) * pixels + pixel);
#ifdef BIAS
  value += LOAD(bias, a);
#endif
#ifdef SLICES
  STORE(y, Y_PLANE(first + b, a, A) * pixels + pixel, value);
#else
  STORE(y, (first_row + b * A + a) * pixels + pixel, value);
#endif
}
