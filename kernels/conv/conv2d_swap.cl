// {a, b, pixels} to {b, a, pixels}, with a bias for each a where there is one. Work-items are pixels times rows.
#include "clnet.clh"

kernel void conv2d_swap(IN(x),
#ifdef BIAS
                        IN(bias),
#endif
                        OUT(y), const int A, const int B, const int pixels) {
  const int pixel = (int)get_global_id(0), row = (int)get_global_id(1);
  if (pixel >= pixels) return;
  const int a = row / B, b = row % B;
  float value = LOAD(x, row * pixels + pixel);
#ifdef BIAS
  value += LOAD(bias, a);
#endif
  STORE(y, (b * A + a) * pixels + pixel, value);
}
