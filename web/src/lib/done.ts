// What is said of a change that was made, and how it is taken back.

import { request } from '../api/client.ts';
import { problemOf } from '../api/problem.ts';
import { lists } from '../live/lists.svelte.ts';
import type { Change } from './changes.ts';
import { notes } from './notes.svelte.ts';

/** What changes of objects bear on is asked for anew. */
export function refreshed(): void {
  lists.refresh('status', 'luns', 'targets', 'hosts', 'grants', 'sessions', 'pools', 'refusals', 'alerts', 'jobs');
}

/** Says it, and offers to undo it where that brings back all of it. */
export function saidDone(change: Change): void {
  const { undo } = change;
  notes.say(`${change.title}: done`, undo && { word: 'Undo', take: () => takeBack(undo) });
}

async function takeBack(undo: Change): Promise<void> {
  try {
    await request(undo.method, undo.path, undo.body);
    notes.say(`${undo.title}: done`);
  } catch (error) {
    notes.say(`${undo.title}: ${problemOf(error).detail ?? 'the daemon does not answer'}`);
  }
  refreshed();
}
