// Short notes at the edge of the page, which go by themselves.

const SHOWN_MS = 5_000;
/** One that offers something can be reached by keyboard, too. */
const OFFERED_MS = 20_000;

interface Note {
  id: number;
  text: string;
  /** What can be done about it: the word of its button. */
  offer?: { word: string; take: () => Promise<void> } | undefined;
}

class Notes {
  all = $state.raw<Note[]>([]);
  private next = 0;

  say(text: string, offer?: Note['offer']): void {
    const id = this.next++;
    this.all = [...this.all, { id, text, offer }];
    setTimeout(() => this.end(id), offer ? OFFERED_MS : SHOWN_MS);
  }

  /** Does what a note offers, once. */
  async take(note: Note): Promise<void> {
    this.end(note.id);
    await note.offer?.take();
  }

  private end(id: number): void {
    this.all = this.all.filter((note) => note.id !== id);
  }
}

export const notes = new Notes();
