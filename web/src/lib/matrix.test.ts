import { describe, expect, it } from 'vitest';
import type { Grant, Session } from '../api/types.ts';
import { matrix } from './matrix.ts';

const grant = (host: string, lun: string) => ({ host, lun, target: 'vms' }) as Grant;
const session = (host: string, portal: string, ...luns: string[]) => ({ host, portal, from: '10.0.0.9:50', initiator: host, target: 'vms', luns: luns.map((lun) => ({ lun })) }) as unknown as Session;

describe('the matrix of paths', () => {
  const grants = [grant('a', 'one'), grant('b', 'one'), grant('b', 'two'), grant('c', 'one'), grant('c', 'three'), grant('d', 'one'), grant('e', 'two'), grant('e', 'three')];
  const sessions = [
    ...['p', 'q'].map((portal) => session('a', portal, 'one')),
    session('b', 'p', 'one', 'two'),
    ...['p', 'q'].map((portal) => session('c', portal, 'one')),
    ...['p', 'q'].map((portal) => session('d', portal, 'one')),
  ];

  it('has the worst hosts and LUNs first: not connected, then a single path, then the name', () => {
    const { hosts, luns } = matrix(grants, sessions, '');
    // e misses two LUNs, c one; b has single paths.
    expect(hosts).toEqual(['e', 'c', 'b', 'a', 'd']);
    expect(luns).toEqual(['three', 'two', 'one']);
  });

  it('says of each cell what it is, and of what is not granted that it is not', () => {
    const { cell } = matrix(grants, sessions, '');
    expect([cell('a', 'one').state, cell('b', 'two').state, cell('e', 'two').state, cell('a', 'two').state]).toEqual(['good', 'warn', 'bad', 'none']);
  });

  it('filters by either name', () => {
    expect(matrix(grants, sessions, 'three')).toMatchObject({ hosts: ['c', 'e'], luns: ['three'] });
  });
});
