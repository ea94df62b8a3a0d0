// By how many paths each host reaches each LUN. Pure.

import type { Grant, Session } from '../api/types.ts';
import { pathsOf, type Paths } from './verdict.ts';

export interface Cell {
  state: 'good' | 'warn' | 'bad' | 'none';
  short: string;
  word: string;
  /** Which NICs, where the host tells them. */
  nics: string[];
}

export interface Matrix {
  hosts: string[];
  luns: string[];
  cell: (host: string, lun: string) => Cell;
}

const NONE: Cell = { state: 'none', short: '·', word: 'not granted', nics: [] };

export function matrix(grants: Grant[], sessions: Session[], filter: string, several: boolean): Matrix {
  const wanted = filter.trim().toLowerCase();
  const some = grants.filter((grant) => !wanted || grant.host.toLowerCase().includes(wanted) || grant.lun.toLowerCase().includes(wanted));
  const order = new Intl.Collator('en', { numeric: true }).compare;
  const granted = new Set(some.map((grant) => `${grant.host}\n${grant.lun}`));
  const paths = new Map<string, Session[]>();
  for (const session of sessions) {
    for (const one of session.luns) {
      const key = `${session.host}\n${one.lun}`;
      paths.set(key, [...(paths.get(key) ?? []), session]);
    }
  }
  return {
    hosts: [...new Set(some.map((grant) => grant.host))].sort(order),
    luns: [...new Set(some.map((grant) => grant.lun))].sort(order),
    cell: (host, lun) => (granted.has(`${host}\n${lun}`) ? cell(paths.get(`${host}\n${lun}`) ?? [], several) : NONE),
  };
}

function cell(sessions: Session[], several: boolean): Cell {
  const nics = [...new Set(sessions.flatMap((session) => session.nic?.name ?? []))].sort();
  return { ...shown(pathsOf(sessions), several), nics };
}

function shown(paths: Paths, several: boolean): Omit<Cell, 'nics'> {
  if (paths.count === 0) return { state: 'bad', short: '0 ×', word: 'granted, not connected' };
  if (paths.single && several) return { state: 'warn', short: `${paths.count} !`, word: 'a single path' };
  return { state: 'good', short: String(paths.count), word: paths.count === 1 ? 'one path' : `${paths.count} paths` };
}
