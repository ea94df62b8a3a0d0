import { describe, expect, it } from 'vitest';
import type { Mirror } from '../api/types.ts';
import { COURSE, MEANS, copiesOf, progressOf, toDo, whatIf } from './copies.ts';

const both = ['san-a', 'san-b'];
const mirror = (of: Partial<Mirror>): Mirror => ({ state: 'owner', owner: 'san-a', epoch: 7, copies: both, in_sync: both, serves: true, text: '', ...of });

describe('the copies of a LUN', () => {
  it('have a word and a state each, this node by what it does itself', () => {
    const words = (of: Partial<Mirror>, here: string) => copiesOf(mirror(of), here).map((one) => [one.node, one.word, one.state, one.isHere]);
    expect(words({}, 'san-a')).toEqual([['san-a', 'owner', 'good', true], ['san-b', 'replica', 'good', false]]);
    expect(words({ state: 'solo', in_sync: ['san-a'] }, 'san-a')).toEqual([['san-a', 'solo', 'warn', true], ['san-b', 'behind', 'warn', false]]);
    expect(words({ state: 'catching-up', in_sync: ['san-a'], serves: false }, 'san-b')).toEqual([['san-a', 'owner', 'good', false], ['san-b', 'catching-up', 'warn', true]]);
    expect(words({ state: 'stopped', serves: false }, 'san-b')[1]).toEqual(['san-b', 'stopped', 'bad', true]);
  });

  it('say what happens when a node fails', () => {
    const then = (of: Partial<Mirror>) => whatIf(mirror(of)).map((one) => [one.then, one.state]);
    expect(then({})).toEqual([
      ['san-b takes over: hosts wait for up to 5 s, and see no error', 'good'],
      ['hosts wait for up to 2.5 s, then san-a goes on alone', 'good'],
      ['hosts have no path; it is served about 3 s after the first of san-a and san-b is back', 'good'],
    ]);
    expect(then({ in_sync: ['san-a'] })).toEqual([
      ['nobody serves before san-a is back: no other copy has all of it', 'bad'],
      ['hosts notice nothing: its copy is behind already', 'good'],
      ['hosts have no path; it is served about 3 s after san-a is back', 'warn'],
    ]);
  });

  it('ask for something only where somebody has to do it', () => {
    expect(toDo(mirror({}), 'san-a')).toEqual([]);
    expect(toDo(mirror({ state: 'replica', serves: false }), 'san-b')).toEqual([]);
    expect(toDo(mirror({ state: 'solo', in_sync: ['san-a'] }), 'san-a')).toEqual(['Start san-b, or mend its network: it is brought up by itself. Until then it does not take over.']);
    // After everything lost power, this one is there first, and lacks something.
    expect(toDo(mirror({ state: 'joining', in_sync: ['san-a'], serves: false }), 'san-b')[0]).toBe('Start san-a: it has all of it, and this node has not, so it does not serve.');
    expect(toDo(mirror({ state: 'holding', serves: false }), 'san-a')[0]).toMatch(/^Check etcd first/);
  });

  it('show how far one is that is brought up, how fast, and for how long', () => {
    const resync = { node: 'san-b', done_bytes: 3 << 20, left_bytes: 1 << 20, sent_bytes: 4096, bytes_per_second: 1 << 20, seconds_left: 1 };
    const { share, facts } = progressOf(resync);
    expect(share).toBe(0.75);
    expect(facts.map(([what]) => what)).toEqual(['Compared', 'Sent, as it differed', 'Rate', 'Time left']);
    expect(facts[0]?.[1]).toBe('3 MiB of 4 MiB');
    const begins = progressOf({ node: 'san-b', done_bytes: 0, left_bytes: 0, sent_bytes: 0, bytes_per_second: 0, whole: 'it is new' });
    expect(begins.share).toBe(0);
    expect(begins.facts.slice(2)).toEqual([['Rate', 'not known yet'], ['Time left', 'not known yet'], ['Why all of it', 'it is new']]);
  });

  it('go through states of which each stands once, with what it means', () => {
    const drawn = COURSE.flatMap((group) => group.states);
    expect(drawn.toSorted()).toEqual(Object.keys(MEANS).toSorted());
  });
});
