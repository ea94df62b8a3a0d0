import { describe, expect, it } from 'vitest';
import type { Pool } from '../api/types.ts';
import { fill } from './pools.ts';

const pool = (used: number, available: number): Pool => ({ total: 252, used, available }) as Pool;

describe('how full a pool is', () => {
  it('leaves out what its file system keeps for itself, as alerts do', () => {
    expect(fill(pool(40, 60))).toBe(0.4);
    expect(fill(pool(0, 60))).toBe(0);
    expect(fill(pool(252, 0))).toBe(1);
  });
  it('is nothing where nothing is known', () => expect(fill(pool(0, 0))).toBe(0));
});
