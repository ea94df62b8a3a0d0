import { describe, expect, it } from 'vitest';
import { spread } from './spread.ts';

describe('how many commands were in flight', () => {
  const bars = (values: (number | null)[], step = 1) => spread(values, step).map((bar) => [bar.from, bar.n]);
  it('has a bar for less than one, and none for what is not known', () => {
    expect(bars([0, 0.4, 0.99, null, 1, 3])).toEqual([[0, 3], [1, 1], [2, 1]]);
    expect(bars([null])).toEqual([]);
  });
  it('counts seconds: each value is the mean of a step', () => {
    expect(bars([0.5, 2, 2], 6)).toEqual([[0, 6], [1, 0], [2, 12]]);
    expect(spread([2, 2, 8], 6).map((bar) => bar.part)).toEqual([1, 0, 0.5]);
  });
});
