"""Generates many plausible clients, always the same, for large demonstrations, benchmarks and tests at scale."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.people.customers import batch
from coaching_service.people.customers.models import CustomerDetails, NewCustomerDocument

BATCH = 1_000
_SEED = 20_261_120
_ARCHIVED_SHARE = 0.1
_WITHOUT_TRAINER_SHARE = 0.2

# Given names and surnames, one culture per line.
_PEOPLE: tuple[tuple[str, str], ...] = (
    ("Ana Carmen Diego Javier José Lucía Marta Pablo", "Álvarez Castro Flores García Muñoz Núñez Ortega Ruiz"),
    ("Beatriz Caio Inês João Letícia Rafael Tiago Vitória", "Almeida Barbosa Carvalho Conceição Lopes Moreira Silva"),
    ("Amélie Benoît Chloé Étienne Hélène Julien Margaux Noé", "Bernard Dubois Fournier Lefèvre Moreau Perrin Rousseau"),
    ("Annika Dieter Greta Jonas Jürgen Katharina Lukas Uwe", "Bauer Fischer Groß Krüger Müller Schäfer Vogel Weiß"),
    (
        "Alice Edward Florence George Harriet Oliver Rose Simon",
        "Baker Clarke Hughes Morgan Taylor Turner Walker Wright",
    ),
    ("Aoife Ciarán Eoin Niamh Oisín Róisín Saoirse Tadhg", "Byrne Doyle Gallagher Kavanagh Nolan O'Brien O'Sullivan"),
    ("Björn Elin Freja Håkon Ingrid Liv Magnus Søren", "Åkesson Berg Dahl Hansen Lindström Nygård Sørensen"),
    ("Aino Eero Helmi Juhani Päivi Sanna Väinö Ilta", "Hämäläinen Korhonen Laine Mäkinen Nieminen Virtanen"),
    ("Agnieszka Ewa Jakub Katarzyna Łukasz Michał Piotr Zofia", "Dąbrowski Kowalska Lewandowski Nowak Wójcik Zając"),
    ("Anton Darya Elena Ivan Mikhail Nadia Sergei Tatiana", "Bondarenko Kovalenko Morozova Petrov Shevchenko Volkov"),
    ("Dimitra Eleni Giorgos Ioanna Kostas Nikos Sofia Yannis", "Georgiou Ioannou Makris Nikolaidis Pappas Vlachos"),
    ("Aylin Berk Çağla Elif Emre Gökhan Özlem Yusuf", "Aydemir Çelik Demir Kaya Öztürk Şahin Yücel"),
    ("Amina Farid Hassan Layla Mariam Omar Salma Youssef", "Benali El-Masry Haddad Khalil Mansour Nasser Saleh"),
    ("Dana Eitan Maya Noam Shira Tamar Uri Yael", "Bar-Lev Cohen Friedman Levi Mizrahi Peretz Shalev"),
    ("Arash Dariush Laleh Mina Parisa Reza Shirin Zahra", "Ahmadi Hosseini Karimi Moradi Rahimi Tehrani"),
    ("Aditi Arjun Deepa Ishaan Kavya Priya Rohan Vikram", "Banerjee Chatterjee Iyer Kapoor Mehta Patel Reddy Singh"),
    ("Chen Hui Jing Li Mei Ming Wei Xiu", "Chan Huang Liu Wang Wu Yang Zhang Zhao"),
    ("Akiko Daichi Haruka Kenji Mai Ren Takashi Yui", "Fujimoto Ito Kobayashi Nakamura Sato Suzuki Tanaka"),
    ("Eun-ji Hyun-woo Ji-hoon Min-seo Seo-yeon Su-bin Yu-na", "Choi Jeong Kang Kim Lee Park Yoon"),
    ("Anh Bảo Hương Linh Minh Quân Thảo Tuấn", "Đặng Hoàng Lê Nguyễn Phạm Trần Vũ"),
    ("Dewi Indah Joko Made Putri Rizky Sari Wayan", "Hidayat Kusuma Lestari Pratama Santoso Wijaya"),
    ("Adaeze Chidi Emeka Folake Ngozi Sade Tunde Yemi", "Adeyemi Balogun Eze Nwosu Obi Okafor Okonkwo"),
    ("Abeba Dawit Hiwot Kebede Selam Tadesse Yonas Zewdi", "Abebe Bekele Girma Haile Mengistu Tesfaye"),
    ("Lerato Mandla Nomsa Sipho Thabo Thandiwe Zanele Zola", "Dlamini Khumalo Mokoena Molefe Ndlovu Nkosi"),
    ("Aroha Hemi Hine Kiri Manaia Sione Tāne Wiremu", "Faleolo Henare Kahu Ngata Parata Tui Walker"),
)
_GROUPS = ("Beginners", "Evening", "Morning", "Online", "Postnatal", "Rehab", "Running", "Seniors", "Strength")
_UNDECOMPOSED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "'": None, "-": None})

ReportProgress = Callable[[int], None]


async def seed_clients(
    services: Services,
    ctx: Context,
    count: int,
    progress: ReportProgress = lambda _: None,
    *,
    trainers: Sequence[ObjectId] = (),
) -> None:
    """Add `count` sample clients to the company of `ctx`, a thousand in each transaction.

    About a tenth are archived and a fifth have no trainer; the others have one of `trainers`, by default the caller.
    `progress` is called with the number of clients after each thousand. Every call adds the same people under new
    identifiers.
    """
    ctx = Context(services, ctx.caller)  # each thousand has a transaction of its own
    chance = random.Random(_SEED)  # noqa: S311 - to be repeatable is the point
    coaches = trainers or (ctx.caller.id,)
    for first in range(0, count, BATCH):
        last = min(first + BATCH, count)
        await batch.add_many(ctx, [build_client(chance, number, count, coaches) for number in range(first, last)])
        progress(last)


@contextmanager
def progress_bar(console: Console, count: int) -> Iterator[ReportProgress]:
    """Show a progress bar on `console` while `count` clients are added; yields the function that updates it."""
    columns = (TextColumn("Adding clients"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=count)
        yield lambda done: bar.update(task, completed=done)


def build_client(chance: random.Random, number: int, count: int, trainers: Sequence[ObjectId]) -> NewCustomerDocument:
    """Return the client with that number, as it is stored."""
    # One culture after another: similar names are close together in the index of suffixes, so that a thousand clients
    # change few of its pages.
    names, surnames = _PEOPLE[number * len(_PEOPLE) // count]
    name, surname = chance.choice(names.split()), chance.choice(surnames.split())
    details: CustomerDetails = {
        "name": name,
        "surname": surname,
        "email": f"{_ascii(name)}.{_ascii(surname)}.{number}@example.com",
        "phone": f"+44 7700 900{chance.randrange(1000):03}",  # a range reserved for fiction
        "birthday": f"{chance.randint(1945, 2008)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
        "groups": sorted(chance.sample(_GROUPS, chance.choice((0, 0, 1, 1, 1, 2, 3)))),
        "assignedTo": None if chance.random() < _WITHOUT_TRAINER_SHARE else chance.choice(trainers),
    }
    archived = chance.random() < _ARCHIVED_SHARE
    return batch.build_document(details, str(uuid.uuid4()), sample=True, archived=archived)


def _ascii(name: str) -> str:
    return normalize(name).translate(_UNDECOMPOSED)
