import { describe, expect, it } from 'vitest';
import type { Grant, Host, Session } from '../api/types.ts';
import { matrix } from './matrix.ts';

const grant = (host: string, lun: string, target = 'vms') => ({ host, lun, target }) as Grant;
const host = (name: string, least: number) => ({ name, redundancy: { connected: least > 0, least_paths: least, targets: least ? [{ target: 'vms', least_paths: least }] : [] } }) as Host;

describe('the matrix of paths', () => {
  const grants = [grant('a', 'one'), grant('b', 'one'), grant('b', 'two'), grant('c', 'one'), grant('c', 'three', 'other'), grant('d', 'one'), grant('e', 'two'), grant('e', 'three')];
  // As the daemon counts them; what c has of three and e has of all is on a target that they have no session with.
  const hosts = [host('a', 2), host('b', 1), host('c', 2), host('d', 2), host('e', 0)];
  const sessions = ['eth1', 'eth0', 'eth0'].map((name) => ({ host: 'a', target: 'vms', nic: { name } }) as Session);

  it('has the worst hosts and LUNs first: not connected, then a single path, then the name', () => {
    const { hosts: names, luns } = matrix(grants, hosts, sessions, '');
    // e misses two LUNs, c one; b has single paths.
    expect(names).toEqual(['e', 'c', 'b', 'a', 'd']);
    expect(luns).toEqual(['three', 'two', 'one']);
  });

  it('says of each cell what it is, and of what is not granted that it is not', () => {
    const { cell } = matrix(grants, hosts, sessions, '');
    expect([cell('a', 'one').state, cell('b', 'two').state, cell('e', 'two').state, cell('a', 'two').state]).toEqual(['good', 'warn', 'bad', 'none']);
    expect(cell('a', 'one')).toEqual({ state: 'good', short: '2', word: '2 paths', nics: ['eth0', 'eth1'] });
  });

  it('counts of a LUN that a host has over two targets the one with fewer paths', () => {
    const both = [{ ...host('a', 1), redundancy: { connected: true, least_paths: 1, targets: [{ target: 'vms', least_paths: 4 }, { target: 'other', least_paths: 1 }] } }];
    expect(matrix([grant('a', 'one'), grant('a', 'one', 'other')], both, [], '').cell('a', 'one').short).toBe('1 !');
    expect(matrix([grant('a', 'one'), grant('a', 'one', 'away')], both, [], '').cell('a', 'one').short).toBe('4');
  });

  it('filters by either name', () => {
    expect(matrix(grants, hosts, sessions, 'three')).toMatchObject({ hosts: ['c', 'e'], luns: ['three'] });
  });
});
