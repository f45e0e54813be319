// Max pooling for CPUs, by windows of a few elements: the largest of a window's elements in each row of the input, all along the row,
// and then the largest of the rows that it sees. So rows are read one after the other, as hardware fetches them ahead, and once for
// all windows that see them. SHORT: rows are short, share nothing and have no padding, so that all stays in registers. Elements win as in
// max_pool2d.cl. A work-item makes `rows` rows of a plane, in blocks of at most BLOCK outputs. INDICES: somebody asks where the
// elements lie. NONTEMPORAL_STORES: results are stored past the caches.
#include "pool2d.clh"
#include "pool2d_rows.clh"
#include "nontemporal_stores.clh"

#ifdef INDICES
#define WITH_INDICES(text) text
#else
#define WITH_INDICES(text)
#endif

typedef VINT any_places __attribute__((aligned(4)));
#define AT(p) (*(local any_vector *)(p))
#define PLACES_AT(p) (*(local any_places *)(p))
#define TAKES(value, largest) (((value) > (largest)) | ((value) != (value)))

// The largest of each window's columns for VW windows of a row, of which the first begins at x[at] and has the place `here`.
static inline VFLOAT along_vector(IN(x), const int at WITH_INDICES(COMMA const int here COMMA VINT *place)) {
  VFLOAT largest = COLUMN(at, 0);
  WITH_INDICES(VINT tap = 0;)
#pragma unroll
  for (int j = 1; j < KERNEL_W; ++j) {
    const VFLOAT value = COLUMN(at, j * DILATION_W);
    const VINT take = TAKES(value, largest);
    largest = select(largest, value, take);
    WITH_INDICES(tap = select(tap, (VINT)(j * DILATION_W), take);)
  }
  WITH_INDICES(*place = clnet_lanes() * STRIDE_W + tap + here;)
  return largest;
}

#ifdef SHORT
// The largest of such rows.
static inline VFLOAT of_window(IN(x), const int from, const int w WITH_INDICES(COMMA const int here COMMA VINT *place)) {
  VFLOAT largest = along_vector(x_base, x_offset, from WITH_INDICES(COMMA here COMMA place));
#pragma unroll
  for (int i = 1; i < KERNEL_H; ++i) {
    const int row = i * DILATION_H * w;
    WITH_INDICES(VINT at;)
    const VFLOAT value = along_vector(x_base, x_offset, from + row WITH_INDICES(COMMA here + row COMMA &at));
    const VINT take = TAKES(value, largest);
    largest = select(largest, value, take);
    WITH_INDICES(*place = select(*place, at, take);)
  }
  return largest;
}
#else
// best[0..] = the largest of windows first..last - 1 in the row from x[from] on, whose first element has the place `here` in its plane.
static inline void along_row(IN(x), const int from, const int here, const int first, const int last, const int w, const int out_w,
                             const int none, local float *restrict best WITH_INDICES(COMMA local int *restrict places)) {
  const int inner_first = max(INNER_FIRST, first), inner_last = min(INNER_LAST, last);
  int ow = first;
  while (ow < last) {
    if (ow >= inner_first && ow < inner_last && inner_last - inner_first >= VW) {
      const int column = min(ow, inner_last - VW), start = column * STRIDE_W - LEFT;  // the last vector overlaps another
      WITH_INDICES(VINT place;)
      AT(best + column - first) = along_vector(x_base, x_offset, from + start WITH_INDICES(COMMA here + start COMMA &place));
      WITH_INDICES(PLACES_AT(places + column - first) = place;)
      ow = column + VW;
      continue;
    }
    float largest = -INFINITY;
    int place = none;
    for (int j = 0; j < KERNEL_W; ++j) {
      const int iw = START_W(ow) + j * DILATION_W;
      if (!IN_EXTENT(iw, w)) continue;
      const float value = LOAD(x, from + iw);
      const bool take = place == none || TAKES(value, largest);
      largest = take ? value : largest;
      place = take ? here + iw : place;
    }
    best[ow - first] = largest;
    WITH_INDICES(places[ow - first] = place;)
    ++ow;
  }
}

// The largest of such rows, which begin at best[begins[..]], in a vector of windows.
static inline VFLOAT of_rows(local const float *restrict best, const int *begins,
                             const int column WITH_INDICES(COMMA local const int *restrict places COMMA VINT *place)) {
  VFLOAT largest = AT(best + begins[0] + column);
  WITH_INDICES(VINT at = PLACES_AT(places + begins[0] + column);)
#pragma unroll
  for (int i = 1; i < KERNEL_H; ++i) {
    const VFLOAT value = AT(best + begins[i] + column);
    const VINT take = TAKES(value, largest);
    largest = select(largest, value, take);
    WITH_INDICES(at = select(at, PLACES_AT(places + begins[i] + column), take);)
  }
  WITH_INDICES(*place = at;)
  return largest;
}
#endif

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void max_pool2d_strips_cpu(IN(x), OUT(y) WITH_INDICES(COMMA OUT(index)), const int planes,
                                                                                 POOL_PARAMETERS, const int pitch,
                                                                                 local float *restrict best
                                                                                 WITH_INDICES(COMMA local int *restrict places)) {
  const int none = h * w, plane = (int)get_global_id(1), first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, out_h);
  if (plane >= planes) return;
  const int length = min(BLOCK, out_w);
  for (int block = 0; block < out_w; block += length) {
    const int begin = min(block, out_w - length);  // the last block overlaps another
#ifndef SHORT
    // Rows of the input that are there, each where that of the same number was whose place it takes.
    int there[KERNEL_H], begins[KERNEL_H];
#pragma unroll
    for (int i = 0; i < KERNEL_H; ++i) there[i] = -1;
#endif
    for (int oh = first; oh < last; ++oh) {
#ifndef SHORT
      int count = 0;
      for (int i = 0; i < KERNEL_H; ++i) {
        const int ih = START_H(oh) + i * DILATION_H;
        if (!IN_EXTENT(ih, h)) continue;
        const int ring_row = REMAINDER(ih / DILATION_H, KERNEL_H), row = ring_row * pitch;
        begins[count++] = row;
        if (there[ring_row] == ih) continue;
        there[ring_row] = ih;
        along_row(x_base, x_offset, (plane * h + ih) * w, ih * w, begin, begin + length, w, out_w, none,
                  best + row WITH_INDICES(COMMA places + row));
      }
      if (count == 0) {
        there[0] = -1, begins[count++] = 0;
        SELDOM for (int i = 0; i < length; ++i) {
          best[i] = -INFINITY;
          WITH_INDICES(places[i] = none;)
        }
      }
      // A row once more changes nothing.
      for (; count < KERNEL_H; ++count) begins[count] = begins[count - 1];
#endif
      const int to = (plane * out_h + oh) * out_w + begin;
#ifdef NONTEMPORAL_STORES
      float made[BLOCK];
      WITH_INDICES(int made_places[BLOCK];)
#endif
      for (int c = 0; c < length; c += VW) {
        const int column = min(c, length - VW);
        WITH_INDICES(VINT place;)
#ifdef SHORT
        const int here = START_H(oh) * w + (begin + column) * STRIDE_W;
        const VFLOAT largest = of_window(x_base, x_offset, plane * h * w + here, w WITH_INDICES(COMMA here COMMA &place));
#else
        const VFLOAT largest = of_rows(best, begins, column WITH_INDICES(COMMA places COMMA &place));
#endif
#ifdef NONTEMPORAL_STORES
        *(any_vector *)(made + column) = largest;
        WITH_INDICES(*(any_places *)(made_places + column) = place;)
#else
        VSTORE(y, to + column, largest);
        WITH_INDICES(*(global any_places *)(PTR(index) + to + column) = place;)
#endif
      }
#ifdef NONTEMPORAL_STORES
      NONTEMPORAL_OUT(y, to, made, length);
      WITH_INDICES(clnet_nontemporal_out((global float *)(PTR(index) + to), (const float *)made_places, length);)
#endif
    }
  }
#ifdef NONTEMPORAL_STORES
  NONTEMPORAL_FENCE();
#endif
}
