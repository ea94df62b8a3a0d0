// Where nothing is, a screen says the one next step; and each form says what it is as a command line and as a call.

import { describe, expect, it } from 'vitest';

const sources = import.meta.glob<string>('../**/*.svelte', { query: '?raw', import: 'default', eager: true });
const named = (path: string) => path.replace('../', '').replace('.svelte', '');

/** Each `<Empty` with what belongs to it, by where it stands. */
const empties = Object.entries(sources).flatMap(([path, text]) =>
  [...text.matchAll(/<Empty\b(?:[^>]|=>)*?(\/>|>(?=[^=])[\s\S]*?<\/Empty>)/g)].map(([tag]) => ({ at: named(path), tag })));

/** It waits for an answer, or all is well. */
const RESTS = /text=("[^"]*(…|Nothing to do\.)"|\{[^}]*Nothing to do\.'\})/;
/** The buttons for it stand above, or the text has what to type. */
const ELSEWHERE = ['screens/luns/LunPage', 'screens/luns/Connect'];

describe('where nothing is', () => {
  it('a screen has the one next step, or says that there is nothing to do', () => {
    expect(empties.length).toBeGreaterThan(40);
    const without = empties.filter(({ tag }) => !/\bnext=|\{next\}|\bfiltered\b|<Button/.test(tag) && !RESTS.test(tag)).map(({ at }) => at);
    expect(without).toEqual(ELSEWHERE.toSorted());
  });
});

describe('a form', () => {
  it('says what it is as a command line and as a call of the API', () => {
    const forms = Object.keys(sources).filter((path) => sources[path]?.includes('<form'));
    const without = forms.filter((path) => !sources[path]?.includes('<SameAs')).map(named);
    expect(forms.length).toBeGreaterThan(3);
    // A login is nothing to repeat: a shell has a token.
    expect(without).toEqual(['parts/Login']);
  });
});
