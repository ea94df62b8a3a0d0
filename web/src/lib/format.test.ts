import { describe, expect, it } from 'vitest';
import { asSold, bytes } from './format.ts';

describe('sizes', () => {
  it('of disks are as they are sold, all others binary', () => {
    expect([12_000_138_625_024, 1_000_204_886_016, 274_877_906_944, 512, 0].map(asSold)).toEqual(['12 TB', '1 TB', '275 GB', '512 B', '0 B']);
    expect(bytes(12_000_138_625_024)).toBe('11 TiB');
  });
});
