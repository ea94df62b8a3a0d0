import { describe, expect, it } from 'vitest';
import { betweenOf, betweenText, timeSaid, within } from './between.ts';

describe('a part of the past', () => {
  it('stands in the address, the earlier first', () => {
    expect(betweenText(1764258600.2, 1764258000.7)).toBe('1764258000-1764258601');
    expect(betweenOf('1764258000-1764258601')).toEqual([1764258000, 1764258601]);
  });
  it('is none where it is too short, or no part', () => {
    expect(betweenText(1764258000, 1764258005)).toBeUndefined();
    for (const text of ['', '1-2', '1764258600-1764258000', '1764258000-', 'a-b', '1764258000-99999999999999']) expect(betweenOf(text), text).toBeUndefined();
  });
  it('is said instead of a span', () => {
    expect(timeSaid(300)).toBe('the last 5 min');
    expect(timeSaid(300, [1764258000, 1764258601])).toMatch(/^the time from 2025-11-2\d \d\d:\d\d:00 to 2025-11-2\d \d\d:\d\d:01$/);
  });
  it('has the values of its time, and no others', () => {
    expect(within([9, 10, 15, 20], ['a', 'b', 'c', 'd'], [10, 20])).toEqual(['b', 'c']);
    expect(within([9, 10], [1, 2], [10, Infinity])).toEqual([2]);
  });
});
