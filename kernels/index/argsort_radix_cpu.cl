// The order of the elements of each line, one line per work-item: keys of 32 bits beside their places, sorted by digits of BITS bits from
// the lowest on (Knuth, "The Art of Computer Programming", 5.2.5). x is {outer, extent, inner}.
#include "clnet.clh"
#include "sort_key.clh"

#define DIGITS (1 << BITS)
#define PASSES ((32 + BITS - 1) / BITS)
#define DIGIT(pair, pass) ((int)((pair) >> (32 + (pass)*BITS)) & (DIGITS - 1))

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void argsort_radix_cpu(IN(x), OUT(pairs), OUT(more), OUT(y), const int lines,
                                                                             const int extent, const int inner) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int base = line / inner * extent * inner + REMAINDER(line, inner);
  global ulong *from = (global ulong *)PTR(pairs) + (size_t)line * extent, *to = (global ulong *)PTR(more) + (size_t)line * extent;
  int counts[PASSES][DIGITS];
  for (int pass = 0; pass < PASSES; ++pass)
    for (int digit = 0; digit < DIGITS; ++digit) counts[pass][digit] = 0;
  for (int i = 0; i < extent; ++i) {
    const ulong pair = (ulong)SORT_KEY(LOAD(x, base + i * inner)) << 32 | (uint)i;
    from[i] = pair;
    for (int pass = 0; pass < PASSES; ++pass) ++counts[pass][DIGIT(pair, pass)];
  }
  for (int pass = 0; pass < PASSES; ++pass) {
    // A digit that all have in common moves nothing.
    if (counts[pass][DIGIT(from[0], pass)] == extent) continue;
    int start = 0;
    for (int digit = 0; digit < DIGITS; ++digit) {
      const int count = counts[pass][digit];
      counts[pass][digit] = start;
      start += count;
    }
    for (int i = 0; i < extent; ++i) {
      const ulong pair = from[i];
      to[counts[pass][DIGIT(pair, pass)]++] = pair;
    }
    global ulong *swapped = from;
    from = to;
    to = swapped;
  }
  for (int i = 0; i < extent; ++i) STORE(y, base + i * inner, (int)(uint)from[i]);
}
