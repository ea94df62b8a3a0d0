import { describe, expect, it } from 'vitest';
import { betweenOf, betweenText } from './between.ts';

describe('a part of the past', () => {
  it('stands in the address, the earlier first', () => {
    expect(betweenText(1764258600.2, 1764258000.7)).toBe('1764258000-1764258601');
    expect(betweenOf('1764258000-1764258601')).toEqual([1764258000, 1764258601]);
  });
  it('is none where it is too short, or no part', () => {
    expect(betweenText(1764258000, 1764258005)).toBeUndefined();
    for (const text of ['', '1-2', '1764258600-1764258000', '1764258000-', 'a-b', '1764258000-99999999999999']) expect(betweenOf(text), text).toBeUndefined();
  });
});
