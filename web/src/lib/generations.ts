// Kept generations of the objects, and LUNs that no object names: what is shown of them, and how they are taken back. Pure.

import type { Kept, Orphan } from '../api/types.ts';
import { cli, type Change } from './changes.ts';
import type { Column } from './columns.ts';
import { bytes } from './format.ts';
import type { State } from './verdict.ts';

export const COLUMNS: Column<Kept>[] = [
  { key: 'generation', title: 'Generation', right: true, value: (one) => one.generation },
  { key: 'written', title: 'Stored', value: (one) => one.written },
  { key: 'luns', title: 'LUNs', right: true, value: (one) => one.luns },
  { key: 'removed', title: 'Deleted', right: true, value: (one) => one.removed },
  { key: 'targets', title: 'Targets', right: true, value: (one) => one.targets },
  { key: 'hosts', title: 'Hosts', right: true, value: (one) => one.hosts },
  { key: 'grants', title: 'Grants', right: true, value: (one) => one.grants },
  { key: 'state', title: 'State', value: (one) => keptSaid(one)[1] },
];

export function keptSaid(one: Kept): [State, string] {
  if (one.problem !== undefined) return ['bad', one.problem];
  return one.in_force ? ['good', 'in force'] : ['off', 'kept'];
}

/** The newest kept one before another, with which that is compared. */
export function olderThan(all: Kept[], generation: number): Kept | undefined {
  return all.filter((one) => one.generation < generation && one.problem === undefined).sort((a, b) => b.generation - a.generation)[0];
}

export function rollBack(generation: number): Change {
  return {
    title: `Go back to generation ${generation}`,
    verb: 'Go back',
    method: 'POST',
    path: `generations/${generation}/rollback`,
    cli: cli('state', 'rollback', String(generation)),
    plans: true,
    typed: `generation ${generation}`,
    explain: 'The objects are as they were then. No data is lost: LUNs that were not there then are deleted and keep theirs. What is in force now stays in this list.',
  };
}

/** How an orphan is named: by its name, else by what its file is named after. */
export const orphanName = (orphan: Orphan): string => orphan.name ?? `naa.${orphan.naa}`;

export function orphanSaid(orphan: Orphan): [State, string] {
  if (orphan.is_foreign) return ['off', 'never was a LUN here'];
  if (orphan.problem !== undefined) return ['warn', orphan.problem];
  return ['good', orphan.removed ? 'was deleted, can be adopted' : 'can be adopted'];
}

export const ORPHAN_COLUMNS: Column<Orphan>[] = [
  { key: 'name', title: 'LUN', value: orphanName },
  { key: 'pool', title: 'Pool', value: (one) => one.pool },
  { key: 'size', title: 'Size', right: true, value: (one) => one.size_bytes, text: (one) => bytes(one.size_bytes) },
  { key: 'block_size', title: 'Blocks', right: true, value: (one) => one.block_size },
  { key: 'state', title: 'State', value: (one) => orphanSaid(one)[1] },
];

/** `blockSize`: of one that has no record, as hosts saw it. */
export function adopt(orphan: Orphan, name: string, blockSize: number | undefined): Change {
  const body = { files: [orphan.naa], pool: orphan.pool, ...(name ? { name } : {}), ...(blockSize === undefined ? {} : { block_size: blockSize }) };
  return {
    title: `Adopt ${orphanName(orphan)}`,
    verb: 'Adopt',
    method: 'POST',
    path: 'orphans/adopt',
    body,
    cli: cli('lun', 'adopt', orphan.naa, '--pool', orphan.pool, ...(name ? ['--name', name] : []), ...(blockSize === undefined ? [] : ['--block-size', String(blockSize)])),
    plans: true,
    explain: 'It is served again with its contents. Grants are not kept with it: hosts see it when they are granted it.',
  };
}
