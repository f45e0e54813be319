// The order of the elements of each line along a dimension: stable, NaN larger than any number. x is {outer, extent, inner}; a line of
// indices on the way lies in one piece, the result (FINAL) as x does.
#include "clnet.clh"

#define SMALLER(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#ifdef DESCENDING
#define BEFORE(a, b) SMALLER(b, a)
#else
#define BEFORE(a, b) SMALLER(a, b)
#endif
#define BASE(line) ((line) / inner * extent * inner + REMAINDER(line, inner))
#define KEY(i) LOAD(x, base + (i) * inner)
#ifdef FINAL
#define PLACE(i) (base + (i) * inner)
#else
#define PLACE(i) (line * extent + (i))
#endif

#if defined(DIRECT)
// Each element counts those before it.
kernel void argsort(IN(x), OUT(y), const int lines, const int extent, const int inner) {
  const int i = (int)get_global_id(0), line = (int)get_global_id(1);
  if (i >= extent || line >= lines) return;
  const int base = BASE(line);
  const VALUE(x) own = KEY(i);
  int rank = 0;
  for (int j = 0; j < extent; ++j) {
    const VALUE(x) other = KEY(j);
    rank += BEFORE(other, own) || (j < i && !BEFORE(own, other)) ? 1 : 0;
  }
  STORE(y, PLACE(rank), i);
}
#elif defined(BLOCK)
// Sorts each block of so many by itself.
kernel void argsort(IN(x), OUT(y), const int lines, const int extent, const int inner) {
  const int first = (int)get_global_id(0) * BLOCK, line = (int)get_global_id(1);
  if (first >= extent || line >= lines) return;
  const int base = BASE(line), count = min(BLOCK, extent - first);
  VALUE(x) keys[BLOCK];
  int order[BLOCK];
  for (int i = 0; i < count; ++i) {
    const VALUE(x) key = KEY(first + i);
    int at = i;
    for (; at > 0 && BEFORE(key, keys[at - 1]); --at) {
      keys[at] = keys[at - 1];
      order[at] = order[at - 1];
    }
    keys[at] = key;
    order[at] = first + i;
  }
  for (int i = 0; i < count; ++i) STORE(y, PLACE(first + i), order[i]);
}
#elif defined(RANKS)
// Merges neighbouring runs of `width`: each element's place is its own in its run and the number of those of the other before it.
kernel void argsort(IN(x), IN(order), OUT(y), const int lines, const int extent, const int inner, const int width) {
  const int at = (int)get_global_id(0), line = (int)get_global_id(1);
  if (at >= extent || line >= lines) return;
  const int base = BASE(line), runs = line * extent;
  const int start = (int)((uint)at / (2u * (uint)width) * (2u * (uint)width)), middle = start + min(width, extent - start);
  const int end = middle + min(width, extent - middle);
  const int own = LOAD(order, runs + at);
  const VALUE(x) key = KEY(own);
  const int left = at < middle;
  int low = left ? middle : start, high = left ? end : middle;
  while (low < high) {
    const int half_way = low + (high - low) / 2;
    const VALUE(x) other = KEY(LOAD(order, runs + half_way));
    const int before = left ? BEFORE(other, key) : !BEFORE(key, other);
    low = before ? half_way + 1 : low;
    high = before ? high : half_way;
  }
  STORE(y, PLACE(left ? at + low - middle : at - middle + low), own);
}
#else
// The same by one work-item per pair of runs.
kernel void argsort(IN(x), IN(order), OUT(y), const int lines, const int extent, const int inner, const int width) {
  const int start = (int)get_global_id(0) * 2 * width, line = (int)get_global_id(1);
  if (start >= extent || line >= lines) return;
  const int base = BASE(line), runs = line * extent;
  const int middle = start + min(width, extent - start), end = middle + min(width, extent - middle);
  int left = start, right = middle;
  for (int to = start; to < end; ++to) {
    int take_left = right >= end;
    if (left < middle && right < end) {
      const VALUE(x) a = KEY(LOAD(order, runs + left)), b = KEY(LOAD(order, runs + right));
      take_left = !BEFORE(b, a);
    }
    STORE(y, PLACE(to), LOAD(order, runs + (take_left ? left : right)));
    left += take_left;
    right += !take_left;
  }
}
#endif
