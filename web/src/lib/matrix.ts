// By how many paths each host reaches each LUN, the worst first. Pure.

import type { Grant, Session } from '../api/types.ts';
import { redundancyOf, type Redundancy } from './paths.ts';

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

export function matrix(grants: Grant[], sessions: Session[], filter: string): Matrix {
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
  const of = (host: string, lun: string) => cell(paths.get(`${host}\n${lun}`) ?? []);
  const each = some.map((grant) => ({ ...grant, rank: RANK[of(grant.host, grant.lun).state] }));
  return {
    hosts: worstFirst(each.map(({ host, rank }) => ({ name: host, rank })), order),
    luns: worstFirst(each.map(({ lun, rank }) => ({ name: lun, rank })), order),
    cell: (host, lun) => (granted.has(`${host}\n${lun}`) ? of(host, lun) : NONE),
  };
}

const RANK: Record<Cell['state'], number> = { bad: 2, warn: 1, good: 0, none: 0 };

/** By the worst of their cells, then by how many there are of that, then by name. */
function worstFirst(cells: { name: string; rank: number }[], order: (a: string, b: string) => number): string[] {
  const worst = new Map<string, { rank: number; count: number }>();
  for (const { name, rank } of cells) {
    const known = worst.get(name);
    if (!known || known.rank < rank) worst.set(name, { rank, count: 1 });
    else if (known.rank === rank && rank > 0) known.count++;
  }
  return [...worst].sort(([a, x], [b, y]) => y.rank - x.rank || y.count - x.count || order(a, b)).map(([name]) => name);
}

function cell(sessions: Session[]): Cell {
  const nics = [...new Set(sessions.flatMap((session) => session.nic?.name ?? []))].sort();
  return { ...shown(redundancyOf(sessions)), nics };
}

function shown({ connected, least_paths: least }: Redundancy): Omit<Cell, 'nics'> {
  if (!connected) return { state: 'bad', short: '0 ×', word: 'granted, not connected' };
  if (least === 1) return { state: 'warn', short: '1 !', word: 'a single path' };
  return { state: 'good', short: String(least), word: `${least} paths` };
}
