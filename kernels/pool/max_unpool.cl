// Elements of each plane put at their indices in a larger one; those of indices outside are left out. FILL: the zeros before.
#include "clnet.clh"

#ifdef FILL
kernel void max_unpool(OUT(y), const int count) {
  const int i = (int)get_global_id(0);
  if (i < count) STORE(y, i, 0.0f);
}
#else
// Elements begin..end - 1 of a plane.
kernel void max_unpool(IN(x), IN(index), INOUT(y), const int planes, const int inputs, const int outputs, const int begin,
                       const int end) {
  const int plane = (int)get_global_id(0);
  if (plane >= planes) return;
  for (int i = begin; i < end; ++i) {
    const long at = LOAD(index, plane * inputs + i);
    if (at >= 0 && at < outputs) STORE(y, plane * outputs + (int)at, LOAD(x, plane * inputs + i));
  }
}
#endif
