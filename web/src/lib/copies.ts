// The copies of a LUN on several nodes: how each is, what comes next, and what happens when a node fails. Pure.

import type { Mirror, Resync } from '../api/types.ts';
import { bytes, rate, seconds } from './format.ts';
import type { State } from './verdict.ts';

/** One copy, as this node knows it. */
export interface CopyShown {
  node: string;
  /** It is the one of the node that shows the page. */
  isHere: boolean;
  state: State;
  word: string;
  does: string;
  hasAll: boolean;
}

/** What a copy goes through, in groups, from its start to serving hosts. */
export const COURSE: { title: string; states: string[] }[] = [
  { title: 'comes up', states: ['joining', 'catching-up', 'copying'] },
  { title: 'has all of it', states: ['replica'] },
  { title: 'takes over', states: ['candidate', 'opening'] },
  { title: 'serves hosts', states: ['owner', 'solo', 'removing', 'holding', 'yielding'] },
  { title: 'does not work', states: ['stopped', 'no-member'] },
];

/** What each state means, for whoever sees it for the first time. */
export const MEANS: Record<string, string> = {
  'joining': 'it has started, and waits to hear of the owner or of etcd',
  'catching-up': 'it gets what it missed out of the owner\'s log',
  'copying': 'it is made anew by the owner, and is no copy until it is whole',
  'replica': 'it has all that was acknowledged, and would take over',
  'candidate': 'it takes over, and waits for etcd',
  'opening': 'it has taken over, and serves in a moment',
  'owner': 'it orders all changes, and the other copy has them, too',
  'solo': 'it orders all changes, and has all of it alone',
  'removing': 'the other copy is silent, and etcd is asked to remove it',
  'holding': 'it owns the LUN, and hosts wait: the other copy is silent, and etcd does not answer',
  'yielding': 'it gives the LUN to the other node',
  'stopped': 'it serves nobody, and needs somebody',
  'no-member': 'this node has no copy, by the records of the cluster',
};

const WORDS_BAD = ['stopped', 'no-member'];
const WORDS_GOOD = ['owner', 'replica'];

/** Of the copy of this node its own state counts; of the others, what this node knows of them. */
export function copiesOf(mirror: Mirror, here: string): CopyShown[] {
  return mirror.copies.map((node) => {
    const isHere = node === here;
    const hasAll = mirror.in_sync.includes(node);
    const word = isHere ? mirror.state : node === mirror.owner ? 'owner' : hasAll ? 'replica' : 'behind';
    const isBad = WORDS_BAD.includes(word), isGood = WORDS_GOOD.includes(word) || (word === 'solo' && mirror.in_sync.length === mirror.copies.length);
    const does = word === 'behind' ? 'it lacks what was acknowledged since it fell behind' : (MEANS[word] ?? word);
    return { node, isHere, hasAll, word, does, state: isBad ? 'bad' : isGood ? 'good' : 'warn' };
  });
}

const and = (names: string[]) => (names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`);

/** How far a copy is that is brought up by comparing it, by what is shown of it. */
export function progressOf(resync: Resync): { share: number; facts: [string, string][] } {
  const all = resync.done_bytes + resync.left_bytes;
  const facts: [string, string][] = [
    ['Compared', `${bytes(resync.done_bytes)} of ${bytes(all)}`],
    ['Sent, as it differed', bytes(resync.sent_bytes)],
    ['Rate', resync.bytes_per_second ? rate(resync.bytes_per_second) : 'not known yet'],
    ['Time left', resync.seconds_left === undefined ? 'not known yet' : seconds(resync.seconds_left)],
  ];
  if (resync.whole) facts.push(['Why all of it', resync.whole]);
  return { share: all ? resync.done_bytes / all : 0, facts };
}

/** What hosts see when a node fails now, and when all do. */
export function whatIf(mirror: Mirror): { what: string; then: string; state: State }[] {
  const each = mirror.copies.map((node) => {
    const others = mirror.in_sync.filter((other) => other !== node);
    const what = `${node} fails`;
    if (!mirror.in_sync.includes(node)) return { what, then: 'hosts notice nothing: its copy is behind already', state: 'good' as State };
    if (node !== mirror.owner) return { what, then: `hosts wait for up to 2.5 s, then ${mirror.owner ?? 'the owner'} goes on alone`, state: 'good' as State };
    if (others.length) return { what, then: `${and(others)} takes over: hosts wait for up to 5 s, and see no error`, state: 'good' as State };
    return { what, then: `nobody serves before ${node} is back: no other copy has all of it`, state: 'bad' as State };
  });
  const first = and(mirror.in_sync) || 'nobody';
  const all = `hosts have no path; it is served about 3 s after ${mirror.in_sync.length > 1 ? `the first of ${first}` : first} is back`;
  return [...each, { what: 'All fail', then: all, state: mirror.in_sync.length > 1 ? 'good' : 'warn' }];
}

/** What somebody is to do, in this order; nothing where all is well. */
export function toDo(mirror: Mirror, here: string): string[] {
  const behind = mirror.copies.filter((node) => !mirror.in_sync.includes(node));
  const owner = mirror.owner ?? 'the owner';
  if (mirror.state === 'stopped' || mirror.state === 'holding') {
    return [`Check etcd first: \`causeway cluster status\` says which of its members answer.`, `Check the network between ${and(mirror.copies)}: it ends when either is back.`];
  }
  if (!mirror.serves && !mirror.in_sync.includes(here)) {
    return [
      `Start ${and(mirror.in_sync)}: ${mirror.in_sync.length > 1 ? 'they have' : 'it has'} all of it, and this node has not, so it does not serve.`,
      `This node is brought up by itself when ${owner} is there.`,
    ];
  }
  if (mirror.state === 'joining' || mirror.state === 'candidate') {
    return [`It goes on when etcd answers, or ${owner} does: \`causeway cluster status\` says who is not there.`];
  }
  return behind.map((node) => (node === here ? 'Nothing: the copy here is brought up by itself.' : `Start ${node}, or mend its network: it is brought up by itself. Until then it does not take over.`));
}
