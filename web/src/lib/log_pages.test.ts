import { describe, expect, it } from 'vitest';
import { behind, onto } from './log_pages.ts';

/** Entries from `first` down to `last`. */
const log = (first: number, last: number) => Array.from({ length: first - last + 1 }, (_, i) => ({ id: first - i }));

describe('a log that goes on', () => {
  it('keeps what its newest page does not have any more', () => {
    // The newest four, with older ones behind; then three more happen, one by one.
    let shown = behind(log(10, 7), { id: 7 }, log(6, 1));
    for (const newest of [11, 12, 13]) shown = onto(log(newest, newest - 3), shown);
    expect(shown).toEqual(log(13, 1));
    expect(onto(log(13, 10), shown)).toEqual(shown);
  });
  it('has no hole where more came than a page has: what is behind it is left out', () => {
    expect(onto(log(30, 27), log(10, 1))).toEqual(log(30, 27));
    // The page ends with the newest of those that are there.
    expect(onto(log(13, 10), log(10, 1))).toEqual(log(13, 1));
  });
  it('is its newest page where that is all, or the first', () => {
    expect(onto(log(3, 1), log(10, 1), true)).toEqual(log(3, 1));
    expect(onto(log(3, 1), [])).toEqual(log(3, 1));
    expect(onto([], [], true)).toEqual([]);
  });
  it('takes no page that belongs behind another end', () => {
    expect(behind(log(30, 27), { id: 7 }, log(6, 1))).toEqual(log(30, 27));
    expect(behind([], { id: 7 }, log(6, 1))).toEqual([]);
  });
});
