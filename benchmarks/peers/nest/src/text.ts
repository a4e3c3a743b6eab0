// Texts for sorting and searching, as the service stores them.
const LENGTH = 8;
const FOLDED: Record<string, string> = {
  ł: "l", ø: "o", đ: "d", ð: "d", ħ: "h", ı: "i", ŧ: "t", æ: "ae", œ: "oe", þ: "th", ŋ: "n", ß: "ss",
};

export function normalize(text: string): string {
  const plain = text.normalize("NFKD").toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
  const folded = plain.replace(/[łøđðħıŧæœþŋß]/g, (letter) => FOLDED[letter]);
  return folded.split(/\s+/).filter(Boolean).join(" ");
}

// The endings of texts, cut to 8 characters; an ending that is the beginning of another is left out.
export function suffixes(...parts: string[]): string[] {
  const endings = new Set<string>();
  for (const part of parts) {
    for (let at = 0; at < part.length; at += 1) endings.add(part.slice(at, at + LENGTH));
  }
  const sorted = [...endings].sort();
  return sorted.filter((ending, at) => !sorted[at + 1]?.startsWith(ending));
}
