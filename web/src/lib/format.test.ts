import { describe, expect, it } from 'vitest';
import { asSold, bytes, compare, day, moment, notWhole, plural, WHOLE, whole, wholeOf } from './format.ts';

describe('sizes', () => {
  it('of disks are as they are sold, all others binary', () => {
    expect([12_000_138_625_024, 1_000_204_886_016, 274_877_906_944, 512, 0].map(asSold)).toEqual(['12 TB', '1 TB', '275 GB', '512 B', '0 B']);
    expect(bytes(12_000_138_625_024)).toBe('11 TiB');
  });
});

describe('a whole number that is typed', () => {
  it('has separators as the page writes them, and k and m as operations are counted', () => {
    expect(['5000', ' 5,000 ', '5k', '2M', '1'].map((text) => wholeOf(text))).toEqual([5_000, 5_000, 5_000, 2e6, 1]);
    for (const text of ['', 'abc', '0', '-1', '1.5', '5,00', '5 k', '5kk', '1e3', '99999999999999999999']) expect(wholeOf(text), text).toBeUndefined();
    expect(['', ' ', '7', 'x'].map((text) => notWhole(text))).toEqual(['', '', '', WHOLE]);
    expect([wholeOf('10000', 10_000), wholeOf('10,001', 10_000)]).toEqual([10_000, undefined]);
  });
});

describe('what a language has its own way for', () => {
  it('are numbers, the order of names, and the words behind a number', () => {
    expect([whole(1_234_567), plural(1, 'host'), plural(12_000, 'host')]).toEqual(['1,234,567', '1 host', '12,000 hosts']);
    expect(['vm10', 'vm9', 'Vm1'].toSorted(compare)).toEqual(['Vm1', 'vm9', 'vm10']);
  });
  it('are no days and times: those are as ISO 8601 has them', () => {
    expect([day(new Date(2026, 10, 7)), moment(new Date(2026, 0, 2, 15, 4, 5).toISOString())]).toEqual(['2026-11-07', '2026-01-02 15:04:05']);
  });
});
