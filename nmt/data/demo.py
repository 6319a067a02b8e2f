"""The built-in demo corpus: synthetic Chinese-English pairs, made by a small grammar.

Nothing here was collected: the lexicon and the rules below are this project's own text, so the corpus
needs no download and no other licence. Every phrase is a small value that knows both of its renderings,
and every construction (a function registered by `construction`) puts such phrases together on both sides
at once. The English of a sentence is a function of its Chinese: where Chinese may leave tense, number,
definiteness or gender open, the grammar always writes the word that settles it (昨天, 了, 一, 这, 些, 她).
`_sentences` checks that promise, and raises when a new rule breaks it.

A split is decided by the English sentence, so that neither side of a held-out pair, with or without its
final 。, is ever seen in training. All choices come from `Random.random`, the one method whose sequence
Python promises to keep, so the corpus is the same bytes everywhere.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

SPLITS = ("train", "valid", "test")
HELD_OUT = 500  # pairs in each of valid and test

# Shown to users as a sentence the model has never met; so it may not even begin a longer one.
UNSEEN = ("我有一只猫", "I have a cat")

Pair = tuple[str, str]
T = TypeVar("T")

# ---------------------------------------------------------------------------------------------- lexicon

# Nouns by kind: Chinese, measure word, English[=irregular plural]; "cup~tea" is measured in cups.
NOUNS = """
pet: 猫 只 cat; 狗 只 dog; 鸟 只 bird; 兔子 只 rabbit; 乌龟 只 turtle; 鸡 只 chicken; 鸭子 只 duck
pet: 羊 只 sheep=sheep; 马 匹 horse; 牛 头 cow; 猪 头 pig; 鱼 条 fish=fish
wild: 老虎 只 tiger; 猴子 只 monkey; 熊猫 只 panda; 狐狸 只 fox; 狼 只 wolf=wolves; 老鼠 只 mouse=mice
wild: 大象 头 elephant; 狮子 头 lion; 熊 头 bear; 蛇 条 snake
job: 老师 位 teacher; 医生 位 doctor; 护士 位 nurse; 律师 位 lawyer; 工程师 位 engineer; 作家 位 writer
job: 科学家 位 scientist; 画家 位 painter; 演员 位 actor; 经理 位 manager; 记者 位 journalist
job: 学生 个 student; 司机 个 driver; 警察 个 police officer; 工人 个 worker; 农民 个 farmer
job: 歌手 个 singer; 厨师 个 chef
mate: 朋友 个 friend; 同学 个 classmate; 同事 个 colleague; 邻居 个 neighbor
boy: 男孩 个 boy; 男人 个 man=men
girl: 女孩 个 girl; 女人 个 woman=women
folk: 孩子 个 child=children; 客人 位 guest; 人 个 person=people
brother: 哥哥 个 older brother; 弟弟 个 younger brother; 儿子 个 son; 叔叔 个 uncle
sister: 姐姐 个 older sister; 妹妹 个 younger sister; 女儿 个 daughter; 阿姨 个 aunt
father: 爸爸 个 father; 爷爷 个 grandfather
mother: 妈妈 个 mother; 奶奶 个 grandmother
fruit: 苹果 个 apple; 橘子 个 orange; 香蕉 根 banana; 梨 个 pear; 桃子 个 peach; 西瓜 个 watermelon
fruit: 西红柿 个 tomato=tomatoes; 土豆 个 potato=potatoes
dish: 蛋糕 个 cake; 三明治 个 sandwich; 汉堡 个 hamburger; 包子 个 steamed bun; 饺子 个 dumpling
dish: 饼干 块 cookie; 鸡蛋 个 egg
meal: 米饭 碗 bowl~rice; 面条 碗 bowl~noodles; 面包 片 slice~bread; 豆腐 块 piece~tofu
meal: 巧克力 块 piece~chocolate; 牛肉 块 piece~beef
drink: 水 杯 cup~water; 茶 杯 cup~tea; 咖啡 杯 cup~coffee; 牛奶 杯 cup~milk; 果汁 瓶 bottle~juice
drink: 可乐 瓶 bottle~cola; 啤酒 瓶 bottle~beer
book: 书 本 book; 小说 本 novel; 词典 本 dictionary; 杂志 本 magazine; 报纸 份 newspaper
letter: 信 封 letter; 电子邮件 封 email
pic: 照片 张 photo; 地图 张 map; 画 张 painting
show: 电影 部 movie; 比赛 场 match; 节目 个 program; 演出 场 performance
song: 歌 首 song; 民歌 首 folk song
cloth: 衬衫 件 shirt; 毛衣 件 sweater; 大衣 件 coat; 外套 件 jacket; 裙子 条 skirt; 连衣裙 条 dress
cloth: 鞋 双 pair~shoes; 袜子 双 pair~socks
worn: 帽子 顶 hat; 围巾 条 scarf=scarves; 手表 块 watch; 眼镜 副 pair~glasses; 手套 副 pair~gloves
bike: 自行车 辆 bicycle; 摩托车 辆 motorcycle
car: 汽车 辆 car; 公共汽车 辆 bus; 出租车 辆 taxi; 卡车 辆 truck
small: 钢笔 支 pen; 铅笔 支 pencil; 钥匙 把 key; 雨伞 把 umbrella; 刀 把 knife=knives; 球 个 ball
small: 钱包 个 wallet; 玩具 个 toy; 礼物 件 gift; 票 张 ticket; 护照 本 passport
ware: 杯子 个 cup; 瓶子 个 bottle; 盘子 个 plate; 碗 个 bowl; 镜子 面 mirror
bag: 包 个 bag; 箱子 个 suitcase; 盒子 个 box
gadget: 手机 部 phone; 电脑 台 computer; 相机 台 camera; 收音机 台 radio
seat: 椅子 把 chair; 沙发 张 sofa; 床 张 bed
furniture: 桌子 张 table; 灯 盏 lamp; 电视 台 television; 冰箱 台 refrigerator
furniture: 钢琴 架 piano; 书架 个 bookshelf=bookshelves
plant: 花 朵 flower; 树 棵 tree
door: 门 扇 door; 窗户 扇 window
"""

# Names a set of kinds once, wherever a table or a construction says which nouns make sense.
GROUPS = {
    "animal": "pet wild",
    "sibling": "brother sister",
    "man": "job boy girl folk",
    "person": "job mate boy girl folk brother sister father mother name",
    "food": "fruit dish",
    "goods": "book cloth worn bike small ware bag gadget seat furniture",
}

# Adjectives by the kinds they describe: Chinese ("-": not before a noun), English, [comparative].
ADJECTIVES = """
person: 聪明 smart smarter; 年轻 young younger; 善良 kind kinder; 勇敢 brave braver
person: 友好 friendly friendlier; 认真 serious; 瘦- thin thinner; 懒- lazy lazier
person plant: 高- tall taller
job brother boy name: 强壮- strong stronger
animal fruit bag seat city: 大 big bigger
animal fruit bag seat ware city: 小 small smaller
goods car: 新 new newer; 旧 old older
goods fruit car: 便宜 cheap cheaper; 贵- expensive
pet cloth worn car ware bag girl sister plant pic city: 漂亮 beautiful
pet: 可爱 cute cuter
wild: 危险 dangerous
food meal: 好吃 delicious
fruit: 新鲜 fresh fresher
meal drink city: 热- hot hotter
drink city: 冷- cold colder
book show letter: 有趣 interesting
book show: 无聊 boring
book gadget: 有用 useful
book letter: 重要 important
show song city job: 有名 famous
language: 难- difficult; 容易- easy easier
letter show song: 长- long longer
cloth seat: 舒服 comfortable
cloth ware car bag city: 干净 clean cleaner
cloth ware car bag bike: 脏- dirty dirtier
pet city: 安静 quiet quieter
bag seat furniture: 重- heavy heavier
car bike: 快- fast faster
"""
# States pass, so only these take 昨天.
STATES = """
person: 忙- busy busier; 累- tired; 高兴- happy happier; 难过- sad sadder; 生气- angry angrier
person: 饿- hungry hungrier; 渴- thirsty thirstier; 紧张- nervous; 兴奋- excited
"""
COLORS = """
cloth worn bike car small seat ware bag: 红色 red; 蓝色 blue; 绿色 green; 黄色 yellow
pet cloth worn car seat ware bag: 白色 white; 黑色 black
"""
# 有点 and 太...了 complain; with these they sound natural.
UNWELCOME = "贵 旧 重 热 冷 无聊 难 长 脏 瘦 懒 忙 累 难过 生气 饿 渴 紧张 危险"

# Deeds done to a thing: Chinese, English: uses, kinds of object. The uses are d (a matter of a day), l (of
# any time), g (takes 过), x (takes it before a bare noun), p (takes 在), h (a habit), w (what one may plan).
DEEDS = """
吃 eat: dxphw food meal meal
喝 drink: dxphw drink
看 read: lgphw book letter
看 watch: lgphw show
看 look at: dpw pic
写 write: lphw letter 小说
收到 receive: l letter 礼物
寄 send: lw letter
买 buy: lw goods fruit plant
买 buy: lw goods cloth worn car
卖 sell: lw car bike gadget furniture
借 borrow: lgw book bike gadget 雨伞
找 look for: dpw small book worn gadget pet
找到 find: d small gadget worn pet
丢 lose: l small gadget worn
洗 wash: dpw cloth ware car fruit
修 repair: lpw bike car gadget 电视 冰箱
用 use: gpw gadget 词典
画 draw: lgpw animal wild plant
看见 see: d animal wild man plant car
骑 ride: gpw bike 马
开 drive: gpw car
做 make: dxpw dish
帮助 help: lgw man mate
遇到 meet: d job mate boy girl
等 wait for: dpw mate job
听 listen to: dxphw song
唱 sing: dgpw song
喂 feed: dpw pet
拍 take: lpw 照片
"""

# Things people do, and where: "-" parts the Chinese verb from its object (踢过足球).
ACTS = """
跑步 run: 公园 体育馆 学校
游泳 swim: 游泳池 海边
跳舞 dance: 公园 酒店 体育馆
唱歌 sing: 公园 花园 教室
学习 study: 学校 图书馆 教室 咖啡馆
工作 work: 医院 银行 工厂 办公室 超市 饭馆 机场 邮局 农场 博物馆
休息 rest: 公园 酒店 咖啡馆 海边 花园
睡觉 sleep: 酒店 火车站
做饭 cook: 厨房 饭馆
散步 take a walk: 公园 海边 花园 动物园
聊天 chat: 咖啡馆 公园 办公室 教室 饭馆
吃饭 eat: 饭馆 酒店 学校 办公室
踢-足球 play soccer: 公园 学校
打-篮球 play basketball: 体育馆 公园 学校
打-网球 play tennis: 体育馆 公园 学校
打-乒乓球 play table tennis: 体育馆 学校
下-棋 play chess: 公园 咖啡馆 花园
弹-钢琴 play the piano: 教室 酒店
弹-吉他 play the guitar: 公园 花园 海边
听音乐 listen to music: 咖啡馆 公园 花园
看电视 watch television: 酒店 办公室
上网 surf the internet: 图书馆 咖啡馆 办公室
画画 paint: 公园 花园 教室 海边
拍照 take photos: 公园 海边 动物园 花园 博物馆
写作业 do homework: 图书馆 教室 咖啡馆
买东西 shop: 超市 商店 市场 书店
开会 have a meeting: 办公室 酒店 学校
打电话 make a phone call: 办公室 邮局 机场
骑自行车 ride a bicycle: 公园 海边
"""
# Daily routine, with the hours it may happen at.
ROUTINES = """
起床 get up: 五 六 七 八
吃早饭 eat breakfast: 六 七 八 九
上班 go to work: 七 八 九
上学 go to school: 七 八
吃午饭 eat lunch: 十二 十一 十二
下班 get off work: 五 六 七
回家 go home: 四 五 六 七 八
吃晚饭 eat dinner: 五 六 七 八
洗澡 take a shower: 七 八 九 十
上床 go to bed: 九 十 十一
"""

PLACES = """
学校 school at; 公园 the park in; 图书馆 the library in; 医院 the hospital in; 饭馆 the restaurant in
商店 the store in; 超市 the supermarket in; 火车站 the train station at; 机场 the airport at
银行 the bank in; 邮局 the post office in; 电影院 the cinema in; 办公室 the office in; 教室 the classroom in
厨房 the kitchen in; 花园 the garden in; 市场 the market at; 博物馆 the museum in; 动物园 the zoo in
海边 the beach at; 体育馆 the gym in; 酒店 the hotel in; 书店 the bookstore in; 咖啡馆 the cafe in
工厂 the factory in; 农场 the farm on; 游泳池 the swimming pool in
"""
CITIES = """
北京 Beijing; 上海 Shanghai; 广州 Guangzhou; 巴黎 Paris; 伦敦 London; 纽约 New York; 东京 Tokyo; 罗马 Rome
柏林 Berlin
"""
COUNTRIES = """
中国 China Chinese; 美国 America American; 英国 England English; 法国 France French; 德国 Germany German
日本 Japan Japanese; 意大利 Italy Italian; 加拿大 Canada Canadian; 俄罗斯 Russia Russian
"""
LANGUAGES = "中文 Chinese; 英语 English; 法语 French; 德语 German; 日语 Japanese; 俄语 Russian"
# What goes from town to town, and what goes about town.
RIDES = "火车 train; 飞机 plane; 船 boat; 公共汽车 bus; 出租车 taxi; 地铁 subway"
ABOUT_TOWN = "学校 医院 机场 博物馆 动物园 海边 酒店 书店 工厂 超市 火车站 银行 图书馆 公园 电影院"

PRONOUNS = """
我 I me my am; 你 you you your are; 他 he him his is; 她 she her her is; 我们 we us our are
他们 they them their are
"""
MEN = "小明 Xiaoming; 李华 Li Hua; 张伟 Zhang Wei; 汤姆 Tom; 杰克 Jack; 约翰 John; 大卫 David; 彼得 Peter"
WOMEN = "小红 Xiaohong; 王芳 Wang Fang; 刘丽 Liu Li; 玛丽 Mary; 安娜 Anna; 露西 Lucy; 丽莎 Lisa; 苏珊 Susan"

NUMBERS = """
两 two; 三 three; 四 four; 五 five; 六 six; 七 seven; 八 eight; 九 nine; 十 ten; 十一 eleven; 十二 twelve
"""
TENS = "二十 twenty; 三十 thirty; 四十 forty; 五十 fifty; 六十 sixty; 七十 seventy; 八十 eighty"
WEEKDAYS = "一 Monday; 二 Tuesday; 三 Wednesday; 四 Thursday; 五 Friday; 六 Saturday; 日 Sunday"
LATELY = """
昨天 yesterday; 前天 the day before yesterday; 昨天晚上 last night; 今天早上 this morning
昨天早上 yesterday morning; 昨天下午 yesterday afternoon
"""
LONG_AGO = "上周 last week; 上个月 last month; 去年 last year; 上个周末 last weekend"
SOON = """
明天 tomorrow; 后天 the day after tomorrow; 今天晚上 tonight; 明天早上 tomorrow morning
明天下午 tomorrow afternoon; 明天晚上 tomorrow evening; 这个周末 this weekend; 下周 next week
"""
HABITS = """
每天 every day; 每天早上 every morning; 每天下午 every afternoon; 每天晚上 every evening
每个周末 every weekend
"""
FREQUENCIES = "常常 often; 总是 always; 有时候 sometimes; 通常 usually; 很少 rarely; 从来不 never"
WEATHER = "下雨 rain; 下雪 snow"

# How Chinese marks a verb (before it; after it) and English inflects it: name, both marks, tense, adverb.
ASPECTS = """
does - - present; did - 了 past; did-not 没 - past not; will 要 - will; will-not 不会 - will not
now 正在 - now; still 还在 - now still; has - 过 perfect; has-not 没 过 perfect not
has-never 从来没 过 perfect never
should 应该 - should; should-not 不应该 - should not; must 必须 - must; can 能 - can; cannot 不能 - can not
could 可以 - can; knows 会 - can; knows-not 不会 - can not; would 就会 - will; would-not 就不 - will not
ought 就应该 - should; wants 想 - want; wants-not 不想 - want not
"""

# Where things may be: the kinds of thing found there.
SPOTS = """
桌子上 on the table: food meal drink ware book letter small gadget pic
桌子下面 under the table: pet bag 球
椅子上 on the chair: cloth book bag 猫
椅子下面 under the chair: 猫 狗 兔子 bag 球
床上 on the bed: cloth book gadget 猫 狗
床下面 under the bed: bag 球 猫 狗 老鼠
沙发上 on the sofa: cloth book gadget 猫 狗
沙发后面 behind the sofa: 猫 狗 兔子 球
箱子里 in the suitcase: cloth worn book gadget
包里 in the bag: book letter small gadget fruit
盒子里 in the box: small dish worn
抽屉里 in the drawer: small letter worn pic
书架上 on the bookshelf: book
冰箱里 in the refrigerator: food drink meal
门后面 behind the door: 猫 狗 folk 雨伞
"""
OUTDOORS = """
窗户旁边 next to the window: seat furniture plant
树下面 under the tree: pet folk boy girl bike seat
学校后面 behind the school: car bike plant pet
医院前面 in front of the hospital: car bike folk plant
商店旁边 next to the store: car bike folk boy girl
教室里 in the classroom: man seat furniture
花园里 in the garden: pet boy girl plant
动物园里 in the zoo: wild
公园里 in the park: man pet bike plant
农场里 on the farm: pet
"""

# 把: what became of a thing: Chinese result, English verb: kinds.
RESULTS = """
吃了 eat: food meal
喝了 drink: drink
卖了 sell: car bike gadget furniture seat
洗了 wash: cloth ware fruit car
修好了 repair: bike car gadget 电视 冰箱
打开了 open: door bag
关上了 close: door
弄丢了 lose: small gadget worn
打破了 break: ware 窗户
带来了 bring: small book gadget food worn
拿走了 take away: small book bag gadget letter
看完了 finish reading: book letter
"""

# Irregular past and participle; the other forms follow from the spelling.
IRREGULAR = """
be was been; eat ate eaten; drink drank drunk; read read read; write wrote written; send sent sent
buy bought bought; sell sold sold; find found found; lose lost lost; draw drew drawn; see saw seen
ride rode ridden; drive drove driven; make made made; meet met met; sing sang sung; feed fed fed
take took taken; run ran run; swim swam swum; sleep slept slept; do did done; have had had; get got got
go went gone; give gave given; put put put; leave left left; lend lent lent; bring brought brought
break broke broken; sit sat sat; stand stood stood; lie lay lain; hold held held; wear wore worn
teach taught taught; know knew known; speak spoke spoken; come came come
"""
DOUBLED = "run swim chat shop get sit put"


# ------------------------------------------------------------------------------------- phrases of two sides


@dataclass(frozen=True)
class Term:
    """A word or a predicate, on each side."""

    zh: str
    en: str


@dataclass(frozen=True)
class Noun:
    """A common noun; `unit` is the English of a measure word that must be said (a CUP of tea)."""

    zh: str
    measure: str
    en: str
    plural: str
    kind: str
    unit: str = ""

    @property
    def mass(self) -> bool:
        """Whether the bare noun is one stuff (tea is), rather than many things (cats, shoes, noodles are)."""
        return bool(self.unit) and not self.en.endswith("s")

    def one(self, adjective: str = "") -> str:
        return _join(self.unit, "of" if self.unit else "", adjective, self.en)

    def many(self, adjective: str = "") -> str:
        if self.unit:
            return _join(_with_s(self.unit), "of", adjective, self.en)
        return _join(adjective, self.plural)

    def bare(self, adjective: str = "") -> str:
        return _join(adjective, self.en if self.unit else self.plural)


@dataclass(frozen=True)
class Adjective:
    """`attribute` is its Chinese before a noun, empty where that would be odd."""

    zh: str
    attribute: str
    en: str
    comparative: str


@dataclass(frozen=True)
class Verb:
    """A verb with its English forms; `tail` follows the inflected word (look FOR, play CHESS)."""

    zh: str
    base: str
    third: str
    past: str
    participle: str
    ing: str
    tail: str


@dataclass(frozen=True)
class Place:
    zh: str
    en: str
    at: str
    to: str


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: `be` carries person and number, `pronoun` is the Chinese that refers back to it."""

    zh: str
    en: str
    be: str
    kind: str = ""
    object: str = ""
    owner: str = ""
    pronoun: str = ""


@dataclass(frozen=True)
class Action:
    """A verb with its object; `daily` if last year is no time for it; `place` suits it, if any does."""

    verb: Verb
    object: Phrase
    daily: bool = False
    place: Place | None = None

    def zh(self, mark: str = "") -> str:
        """The Chinese with an aspect marker: 买了书, 看过书, but 跑步了."""
        verb, _, own = self.verb.zh.partition("-")
        if mark == "了" and not self.object.zh:
            return f"{verb}{own}了"
        return f"{verb}{mark}{own}{self.object.zh}"

    def en(self, form: str) -> str:
        """The English outside a finite clause, in one of the forms of its verb."""
        return _join(getattr(self.verb, form), self.verb.tail, self.object.object)


@dataclass(frozen=True)
class Deed:
    """What one does to things of some kinds; `uses` are letters, as in DEEDS."""

    verb: Verb
    uses: str
    kinds: str


@dataclass(frozen=True)
class Aspect:
    """How Chinese marks a verb, before and after it, and how English inflects it."""

    before: str
    after: str
    tense: str
    adverb: str
    no: bool


# ------------------------------------------------------------------------------------- reading the lexicon


def _join(*words: str) -> str:
    return " ".join(filter(None, words))


def _with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x")) or word in ("go", "do"):
        return word + "es"
    return word[:-1] + "ies" if _ends_in_i(word) else word + "s"


def _with_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if _ends_in_i(word) else word + "ed"


def _ends_in_i(word: str) -> bool:
    """Whether a final y turns into i before an ending: study, but not play."""
    return word.endswith("y") and word[-2] not in "aeou"


def _entries(table: str) -> list[str]:
    return [entry.strip() for line in table.strip().split("\n") for entry in line.split(";")]


def _term(entry: str) -> Term:
    return Term(*entry.split(" ", 1))


def _terms(table: str) -> list[Term]:
    return [_term(entry) for entry in _entries(table)]


def _rows(table: str) -> list[tuple[Term, str]]:
    """Lines of "Chinese English: words"."""
    lines = (line.split(": ") for line in table.strip().split("\n"))
    return [(_term(entry), words) for entry, words in lines]


@cache
def _kinds(words: str) -> list[str]:
    """Group names expanded; what remains are kinds of noun, or single nouns."""
    return [kind for word in words.split() for kind in (_kinds(GROUPS[word]) if word in GROUPS else [word])]


def _nouns() -> dict[str, list[Noun]]:
    """The nouns of every kind, and every noun alone under its own Chinese."""
    table: dict[str, list[Noun]] = {}
    for kind, entries in (line.split(": ") for line in NOUNS.strip().split("\n")):
        for zh, measure, word in (entry.split(" ", 2) for entry in entries.split("; ")):
            unit, _, stuff = word.rpartition("~")
            en, _, plural = stuff.partition("=")
            noun = Noun(zh, measure, en, plural or _with_s(en), kind, unit)
            table.setdefault(kind, []).append(noun)
            table[zh] = [noun]
    return table


def _adjectives(table: str) -> dict[str, list[Adjective]]:
    """The adjectives that suit each kind."""
    suited: dict[str, list[Adjective]] = {}
    for kinds, entries in (line.split(": ") for line in table.strip().split("\n")):
        for zh, en, *comparative in (entry.split() for entry in entries.split("; ")):
            attribute = "" if zh.endswith("-") else zh if len(zh) == 1 else f"{zh}的"
            adjective = Adjective(zh.strip("-"), attribute, en, "".join(comparative) or f"more {en}")
            for kind in _kinds(kinds):
                suited.setdefault(kind, []).append(adjective)
    return suited


def _verb(zh: str, en: str) -> Verb:
    base, _, tail = en.partition(" ")
    stem = base + base[-1] if base in DOUBLED.split() else base
    past, participle = PASTS.get(base) or (_with_ed(stem), _with_ed(stem))
    third = {"have": "has"}.get(base) or _with_s(base)
    ing = {"lie": "lying"}.get(base) or (base[:-1] if base.endswith("e") else stem) + "ing"
    return Verb(zh, base, third, past, participle, ing, tail)


def _verbs(table: str) -> list[Verb]:
    return [_verb(term.zh, term.en) for term in _terms(table)]


def _to(place: Place) -> Phrase:
    """The place as what 去 takes."""
    return Phrase(place.zh, "", "is", object=place.to)


def _town(term: Term) -> Place:
    return Place(term.zh, term.en, f"in {term.en}", f"to {term.en}")


def _place(term: Term) -> Place:
    en, at = term.en.rsplit(" ", 1)
    return Place(term.zh, en, f"{at} {en}", f"to {en}")


def _aspects() -> dict[str, Aspect]:
    table = {}
    for name, before, after, tense, *rest in (entry.split() for entry in _entries(ASPECTS)):
        no = rest == ["not"]
        table[name] = Aspect(before.strip("-"), after.strip("-"), tense, "" if no else " ".join(rest), no)
    for often in _terms(FREQUENCIES):
        table[often.en] = Aspect(often.zh, "", "present", often.en, False)
    return table


def _pronouns() -> list[Phrase]:
    rows = (entry.split() for entry in _entries(PRONOUNS))
    return [Phrase(zh, en, be, "name", them, their, zh) for zh, en, them, their, be in rows]


def _named(table: str, pronoun: str) -> list[Phrase]:
    return [Phrase(t.zh, t.en, "is", "name", t.en, f"{t.en}'s", pronoun) for t in _terms(table)]


PASTS = {base: (past, done) for base, past, done in (entry.split() for entry in _entries(IRREGULAR))}
IS, IS_AT, IS_SO = (_verb(zh, "be") for zh in ("是", "在", ""))
HAVE, LIKE, LIVE, GO = _verbs("有 have; 喜欢 like; 住在 live; 去 go")
NOTHING, NONE, NOBODY = Term("", ""), Phrase("", "", "is"), Phrase("谁", "who", "is", "name", "who")
IT, THEM = Phrase("它", "it", "is", object="it"), Phrase("它们", "they", "are", object="them")
SKY, THERE_IS, THERE_ARE = Phrase("", "it", "is"), Phrase("", "there", "is"), Phrase("", "there", "are")
PRONOUN, NAMED = _pronouns(), _named(MEN, "他") + _named(WOMEN, "她")
BACK = {phrase.zh: phrase for phrase in (*PRONOUN, IT, THEM)}
SINGLE = [phrase for phrase in PRONOUN if not phrase.zh.endswith("们")]
NOUN = _nouns()
TRAITS, MOODS, HUES = _adjectives(ADJECTIVES), _adjectives(STATES), _adjectives(COLORS)
LOOKS = {kind: TRAITS.get(kind, []) + HUES.get(kind, []) for kind in NOUN}
THING_KINDS = [kind for kind in NOUN if kind in TRAITS and kind not in _kinds("person")]
SUITS = {look: [k for k in THING_KINDS if look in TRAITS[k]] for kind in THING_KINDS for look in TRAITS[kind]}
BAD_MOODS = [mood for mood in MOODS["name"] if mood.zh in UNWELCOME.split()]
SITES = {term.zh: _place(term) for term in _terms(PLACES)}
PLACE = list(SITES.values())
HOME = Place("家", "home", "at home", "home")
NATIONS = [Term(f"{term.zh}人", term.en.split()[1]) for term in _terms(COUNTRIES)]
LANDS = [Term(term.zh, term.en.split()[0]) for term in _terms(COUNTRIES)]
TOWNS = [_town(term) for term in _terms(CITIES) + LANDS]
TONGUES, VEHICLES = _terms(LANGUAGES), _terms(RIDES)
ASPECT, OFTEN = _aspects(), " ".join(often.en for often in _terms(FREQUENCIES))
DAYS = _terms(WEEKDAYS)
NEAR = {"past": _terms(LATELY), "will": _terms(SOON)[:6], "present": _terms(HABITS)}
EVER = {
    "past": NEAR["past"] + _terms(LONG_AGO) + [Term("上周" + day.zh, "last " + day.en) for day in DAYS],
    "will": _terms(SOON) + [Term("下周" + day.zh, "next " + day.en) for day in DAYS],
    "present": NEAR["present"] + [Term("每周" + day.zh, "every " + day.en) for day in DAYS],
}
ACT = [(_verb(term.zh, term.en), [SITES[word] for word in words.split()]) for term, words in _rows(ACTS)]
DEED = [Deed(_verb(term.zh, term.en), *words.split(" ", 1)) for term, words in _rows(DEEDS)]
ROUTINE = [(_verb(term.zh, term.en), hours) for term, hours in _rows(ROUTINES)]
RESULT = [(_verb(term.zh, term.en), words) for term, words in _rows(RESULTS)]
INDOOR, SPOT = _rows(SPOTS), _rows(SPOTS + OUTDOORS.lstrip())
COUNTS, ROUND = _terms(NUMBERS), _terms(TENS)


def lexicon() -> list[tuple[str, str]]:
    """Every entry of the lexicon, Chinese and English."""
    found = {(noun.zh, noun.en) for nouns in NOUN.values() for noun in nouns}
    found |= {(a.zh, a.en) for table in (TRAITS, MOODS, HUES) for row in table.values() for a in row}
    verbs = [deed.verb for deed in DEED] + [verb for verb, _ in RESULT]
    verbs += [verb for verb, _ in ACT] + [verb for verb, _ in ROUTINE]
    found |= {(verb.zh.replace("-", ""), _join(verb.base, verb.tail)) for verb in verbs}
    found |= {(place.zh, place.en) for place in (*PLACE, HOME, *TOWNS)}
    found |= {(phrase.zh, phrase.en) for phrase in (*PRONOUN, *NAMED)}
    terms = [*TONGUES, *NATIONS, *VEHICLES, *COUNTS, *ROUND, *_terms(FREQUENCIES), *_terms(WEATHER)]
    terms += [spot for spot, _ in SPOT] + [time for times in EVER.values() for time in times]
    return sorted(found | {(term.zh, term.en) for term in terms})


# ------------------------------------------------------------------------------------------------- clauses


def _article(words: str) -> str:
    return ("an " if words[0] in "aeiou" and not words.startswith("us") else "a ") + words


def _finite(be: str, verb: Verb, tense: str, support: bool) -> tuple[str, str]:
    """The auxiliary (or "") and the main verb, agreeing with a subject that takes `be`."""
    third, was = be == "is", "were" if be == "are" else "was"
    if tense in ("now", "then"):
        return (be if tense == "now" else was), verb.ing
    if tense == "perfect":
        return ("has" if third else "have"), verb.participle
    if tense == "want":
        auxiliary, main = _finite(be, _verb("", "want"), "present", support)
        return auxiliary, f"{main} to {verb.base}"
    if tense not in ("present", "past"):
        return tense, verb.base
    if verb.base == "be":
        return (be if tense == "present" else was), ""
    if support:
        return ("did" if tense == "past" else "does" if third else "do"), verb.base
    return "", (verb.past if tense == "past" else verb.third if third else verb.base)


def _clause(
    subject: Phrase, verb: Verb, tense: str, *rest: str, no: bool = False, ask: bool = False, adverb: str = ""
) -> str:
    """English; `tense` is present, past, now, then (was doing), perfect, want, or a modal such as will."""
    auxiliary, main = _finite(subject.be, verb, tense, support=no or ask)
    head = (auxiliary, subject.en) if ask else (subject.en, auxiliary)
    return _join(*head, "not" if no else "", adverb, main, verb.tail, *rest).replace("can not", "cannot")


def _fact(
    subject: Phrase, verb: Verb, rest: Term, time: Term = NOTHING, *, no: bool = False, ask: bool = False
) -> Pair:
    """Both sides of a state of things: 他昨天不高兴, 她有一只猫吗."""
    negative = ("没" if verb.zh == "有" else "不") if no else ""
    zh = f"{subject.zh}{time.zh}{negative}{verb.zh}{rest.zh}"
    tense = "past" if time.en else "present"
    return zh, _clause(subject, verb, tense, rest.en, time.en, no=no, ask=ask)


def _event(
    subject: Phrase,
    name: str,
    action: Action,
    time: Term = NOTHING,
    *,
    friend: Phrase = NONE,
    place: Place | None = None,
    ask: bool = False,
) -> Pair:
    """Both sides of something done, under the aspect of that name: 我昨天和她一起在公园跑步了."""
    aspect = ASPECT[name]
    where = ("" if aspect.before.endswith("在") else "在") + place.zh if place else ""
    with_zh, with_en = (f"和{friend.zh}一起", f"with {friend.object}") if friend.zh else ("", "")
    zh = f"{subject.zh}{time.zh}{aspect.before}{with_zh}{where}{action.zh(aspect.after)}"
    rest = (action.object.object, with_en, place.at if place else "", time.en)
    return zh, _clause(subject, action.verb, aspect.tense, *rest, no=aspect.no, ask=ask, adverb=aspect.adverb)


def _say(sides: Pair) -> Pair:
    zh, en = sides
    return zh, en[0].upper() + en[1:] + "."


def _ask(sides: Pair, word: str = "", particle: str = "吗") -> Pair:
    """A question; a question word leads the English, and in Chinese stands where its answer would."""
    zh, en = sides[0] + ("" if word else particle), _join(word, sides[1])
    return zh + "？", en[0].upper() + en[1:] + "?"


# --------------------------------------------------------------------------------------- drawing by chance


class Draw:
    """Random choices, made by `Random.random` alone."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random

    def one(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def word(self, words: str) -> str:
        return self.one(words.split())

    def chance(self, share: float) -> bool:
        return self.random() < share


def _noun(g: Draw, kinds: str) -> Noun:
    return g.one(NOUN[g.one(_kinds(kinds))])


def _noun_phrase(g: Draw, noun: Noun, determiners: str, adjective: float = 0.2) -> Phrase:
    """A noun under one of the determiners: a, num, this, that, these, those, my, the, bare."""
    choice = g.word(determiners)
    looks = [look for look in LOOKS[noun.kind] if look.attribute and not noun.zh.startswith(look.zh)]
    wanted = looks and choice != "the" and g.chance(adjective)
    look = g.one(looks) if wanted else Adjective("", "", "", "")
    zh, single, whole = look.attribute + noun.zh, noun.one(look.en), noun.bare(look.en)
    be, own, own_be = "is", (whole if noun.unit else single), ("is" if noun.mass or not noun.unit else "are")
    if choice == "a":
        zh, en = f"一{noun.measure}{zh}", _article(single)
    elif choice == "num":
        count = g.one(COUNTS[:4])
        zh, en, be = f"{count.zh}{noun.measure}{zh}", f"{count.en} {noun.many(look.en)}", "are"
    elif choice in ("this", "that"):
        zh, en = f"{'这' if choice == 'this' else '那'}{noun.measure}{zh}", f"{choice} {single}"
    elif choice in ("these", "those") and not noun.mass:
        zh, en, be = f"{'这' if choice == 'these' else '那'}些{zh}", f"{choice} {whole}", "are"
    elif choice == "my":
        owner = g.one(g.one((PRONOUN, PRONOUN, PRONOUN, NAMED)))
        zh, en, be = f"{owner.zh}的{zh}", f"{owner.owner} {own}", own_be
    elif choice == "the":
        en, be = f"the {own}", own_be
    else:
        en, be = whole, "is" if noun.mass else "are"
    return Phrase(zh, en, be, noun.kind, en, pronoun="它" if be == "is" else "它们")


def _thing(g: Draw, kinds: str, determiners: str, adjective: float = 0.2) -> Phrase:
    return _noun_phrase(g, _noun(g, kinds), determiners, adjective)


def _kin(g: Draw) -> Phrase:
    """我妈妈, 汤姆的姐姐."""
    owner, kind = g.one(SINGLE if g.chance(0.8) else NAMED), g.word("sibling sibling father mother")
    noun = _noun(g, kind)
    zh, en = owner.zh + ("的" if owner in NAMED else "") + noun.zh, f"{owner.owner} {noun.en}"
    pronoun = "他" if noun.kind in ("brother", "father") else "她"
    return Phrase(zh, en, "is", noun.kind, en, pronoun=pronoun)


def _who(g: Draw, *, single: bool = False, known: bool = False) -> Phrase:
    """Somebody, as a subject; `single`: not several; `known`: as he or as she."""
    draw = g.random()
    if draw < 0.65:
        return g.one(NAMED if draw > 0.43 else SINGLE if single else PRONOUN)
    if known or draw < 0.82:
        return _kin(g)
    if draw < 0.87:
        return _thing(g, "mate 老师 医生 经理", "my", 0)
    return _thing(g, "man", "this that" if single else "this that that these those", 0.15)


def _other(g: Draw, subject: Phrase) -> Phrase:
    """Somebody else than the subject."""
    while True:
        other = g.one(PRONOUN if g.chance(0.4) else NAMED)
        if other.zh[0] not in subject.zh:
            return other


def _trait(g: Draw) -> tuple[Noun, Adjective]:
    """A thing and what may be said of it, every adjective as often as any other."""
    look = g.one(list(SUITS))
    return _noun(g, " ".join(SUITS[look])), look


def _act(g: Draw) -> Action:
    verb, places = g.one(ACT)
    return Action(verb, NONE, daily=True, place=g.one(places))


def _deed(g: Draw, uses: str, determiners: str, adjective: float = 0.2) -> Action:
    """A deed fit for one of the uses."""
    use = g.word(uses)
    deed = g.one([deed for deed in DEED if use in deed.uses])
    return Action(deed.verb, _thing(g, deed.kinds, determiners, adjective), daily="d" in deed.uses)


def _time(g: Draw, tense: str, action: Action | None = None, share: float = 1.0) -> Term:
    """A time that goes with the tense and the action, or none."""
    return g.one((NEAR if action and action.daily else EVER)[tense]) if g.chance(share) else NOTHING


def _maybe(
    g: Draw, subject: Phrase, verb: Verb, rest: Term, time: Term = NOTHING, ask: float = 0.15, no: float = 0.2
) -> Pair:
    """A state of things asserted, denied or asked."""
    if g.chance(ask):
        return _ask(_fact(subject, verb, rest, time, ask=True))
    return _say(_fact(subject, verb, rest, time, no=g.chance(no)))


def _tell(
    g: Draw,
    names: str,
    action: Action,
    time: Term = NOTHING,
    *,
    friend: Phrase = NONE,
    place: Place | None = None,
    ask: float = 0.0,
) -> Pair:
    """Somebody does something, under one of the named aspects, or is asked about under the first."""
    subject = _who(g)
    if g.chance(ask):
        return _ask(_event(subject, names.split()[0], action, time, friend=friend, place=place, ask=True))
    return _say(_event(subject, g.word(names), action, time, friend=friend, place=place))


# ------------------------------------------------------------------------------------------- constructions

Construction = Callable[[Draw], Pair]
CONSTRUCTIONS: dict[str, tuple[int, Construction]] = {}


def construction(quota: int) -> Callable[[Construction], Construction]:
    """Register a maker of sentences, and how many different ones the corpus wants of it."""

    def register(make: Construction) -> Construction:
        CONSTRUCTIONS[make.__name__] = (quota, make)
        return make

    return register


OWNED = "pet pet pet sibling mate book cloth worn bike small bag gadget car seat furniture"
THINGS = """
pet pet wild wild fruit fruit dish meal meal meal drink book letter pic show song cloth worn bike car ware bag
gadget seat furniture
"""
PUT = [(spot, re.sub("[猫狗]", "", kinds)) for spot, kinds in INDOOR if spot.zh[-1] in "上里"]


@construction(1500)
def have(g: Draw) -> Pair:
    # Mostly pets and pronouns: the unseen sentence is to be met from every side.
    subject = g.one(PRONOUN) if g.chance(0.3) else _who(g)
    owned = _thing(g, "pet" if g.chance(0.4) else OWNED, "a a a num", 0.15)
    verb = g.one((HAVE, HAVE, HAVE, HAVE, HAVE, _verb("也有", "also have")))
    if verb is not HAVE:
        en = _clause(subject, HAVE, "present", owned.object, adverb="also")
        return _say((subject.zh + verb.zh + owned.zh, en))
    return _maybe(g, subject, verb, Term(owned.zh, owned.object), ask=0.05, no=0)


@construction(380)
def have_not(g: Draw) -> Pair:
    """Under 有 asked or denied, a bare noun is any one: 没有狗."""
    noun = _noun(g, OWNED)
    return _maybe(g, _who(g), HAVE, Term(noun.zh, _article(noun.one())), ask=0.4, no=1)


@construction(270)
def how_many(g: Draw) -> Pair:
    if g.chance(0.5):
        spot, kinds = g.one(SPOT)
        zh, en = f"{spot.zh}有几", f"are there {spot.en}"
    else:
        subject, kinds = _who(g), OWNED
        zh, en = f"{subject.zh}有几", _clause(subject, HAVE, "present", ask=True)
    noun = _noun(g, kinds)
    return _ask((f"{zh}{noun.measure}{noun.zh}", en), f"how many {noun.many()}")


@construction(850)
def who_is(g: Draw) -> Pair:
    """Occupation, nationality, and what somebody is to somebody."""
    subject, noun = _who(g, known=True), _noun(g, "job")
    many = subject.be == "are" and subject.zh != "你"
    what = Term(noun.zh, noun.plural if many else _article(noun.en))
    if g.chance(0.5):
        what = g.one(NATIONS)
    elif g.chance(0.3):
        subject = g.one([*NAMED, BACK["他"], BACK["她"], BACK["他们"]])
        noun = _noun(g, "mate mate 老师 医生 学生 经理")
        owner = g.one([BACK["我"], BACK["你"], BACK["我们"]])
        role = noun.plural if subject.be == "are" else noun.en
        what = Term(f"{owner.zh}的{noun.zh}", f"{owner.owner} {role}")
    return _maybe(g, subject, IS, what)


@construction(520)
def this_is(g: Draw) -> Pair:
    many = g.chance(0.3)
    noun = _noun(g, "pet wild fruit book bike car bag gadget small" if many else f"{THINGS} small")
    word = g.one(_terms("这些 these; 那些 those" if many else "这 this; 那 that"))
    owned = not noun.unit and noun.kind != "wild"
    what = _noun_phrase(g, noun, "bare" if many else "a my" if owned else "a")
    return _maybe(g, Phrase(word.zh, word.en, "are" if many else "is"), IS, Term(what.zh, what.en))


def _so(look: Adjective) -> Term:
    return Term("很" + look.zh, look.en)


def _quality(g: Draw, look: Adjective) -> tuple[Term, bool]:
    """很高, 非常贵, 有点累, 太大了, or denied."""
    degree = g.word("很 很 很 非常 不" + (" 有点 太" if look.zh in UNWELCOME.split() else ""))
    if degree == "不":
        return Term(look.zh, look.en), True
    word = {"很": "", "非常": "very", "有点": "a little", "太": "too"}[degree]
    return Term(f"{degree}{look.zh}{'了' if degree == '太' else ''}", _join(word, look.en)), False


@construction(1050)
def describe(g: Draw) -> Pair:
    time, moody = NOTHING, g.chance(0.5)
    if g.chance(0.2):
        town, tongue, kind = g.one(TOWNS), g.one(TONGUES), g.word("city language language language")
        subject = Phrase(town.zh, town.en, "is") if kind == "city" else Phrase(tongue.zh, tongue.en, "is")
        look = g.one(TRAITS[kind])
    elif g.chance(0.5):
        noun, look = _trait(g)
        own = "these" if noun.kind == "wild" else "my"
        subject = _noun_phrase(g, noun, f"this that those {own}", 0)
        if noun.kind in HUES and g.chance(0.3):
            hue = g.one(HUES[noun.kind])
            return _maybe(g, subject, IS, Term(hue.attribute, hue.en))
    else:
        subject = _who(g)
        look = g.one((MOODS if moody else TRAITS)[subject.kind])
        time = _time(g, "past", _act(g), 0.4) if moody else NOTHING
    if g.chance(0.12):
        return _ask(_fact(subject, IS_SO, Term(look.zh, look.en), time, ask=True))
    quality, no = _quality(g, look)
    return _say(_fact(subject, IS_SO, quality, time, no=no))


@construction(800)
def like(g: Draw) -> Pair:
    subject, action = _who(g), g.one((_act(g), _deed(g, "h", "bare", 0)))
    thing = _thing(g, f"animal plant wild {THINGS}", "bare bare bare this that", 0.15)
    other, town = _other(g, subject), g.one(TOWNS)
    what = g.one(
        [Term(thing.zh, thing.object)] * 5
        + [Term(action.zh(), action.en("ing"))] * 2
        + [Term(other.zh, other.object), Term(town.zh, town.en)]
    )
    if g.chance(0.2):
        return _say(_fact(subject, _verb("非常喜欢", "like"), Term(what.zh, f"{what.en} very much")))
    return _maybe(g, subject, LIKE, what)


STATIVE = """
需要 need: goods car drink
想要 want: goods car drink
认识 know: job mate folk boy girl
"""


@construction(400)
def stative(g: Draw) -> Pair:
    subject, (state, kinds), town = _who(g), g.one(_rows(STATIVE)), g.one(TOWNS)
    thing = _thing(g, kinds, "this that those" if state.zh == "认识" else "a a num")
    if g.chance(0.5):
        verb, where = g.one(((LIVE, town.at), (_verb("来自", "come from"), town.en)))
        return _maybe(g, subject, verb, Term(town.zh, where), no=0.2 if verb is LIVE else 0)
    return _maybe(g, subject, _verb(state.zh, state.en), Term(thing.zh, thing.object), no=0)


@construction(1300)
def did(g: Draw) -> Pair:
    action = _deed(g, "d l l", "a a a num num this that")
    return _tell(g, "did", action, _time(g, "past", action, 0.6))


@construction(750)
def did_or_not(g: Draw) -> Pair:
    action = _act(g) if g.chance(0.3) else _deed(g, "d l", "this that those")
    return _tell(g, "did did-not", action, _time(g, "past", action, 0.6), ask=0.25)


@construction(850)
def act(g: Draw) -> Pair:
    """Activities, with when, where and with whom."""
    subject, action = _who(g), _act(g)
    name = g.word("did did will does does")
    tense = ASPECT[name].tense
    time = g.one((EVER if tense == "present" else NEAR)[tense])
    friend = _other(g, subject) if g.chance(0.25) else NONE
    place = action.place if g.chance(0.5) else None
    return _say(_event(subject, name, action, time, friend=friend, place=place))


@construction(700)
def habit(g: Draw) -> Pair:
    """常常, 从来不, 每天."""
    if g.chance(0.25):
        return _tell(g, "does", _deed(g, "h", "bare", 0), _time(g, "present"))
    action = _act(g) if g.chance(0.5) else _deed(g, "h", "bare", 0)
    return _tell(g, OFTEN, action, place=action.place if g.chance(0.5) else None)


@construction(400)
def routine(g: Draw) -> Pair:
    """At what hour."""
    (verb, hours), subject = g.one(ROUTINE), _who(g)
    hour = g.one([count for count in COUNTS if count.zh in hours.split()])
    time = g.one(NEAR["past"][:2] + NEAR["present"][:1] + EVER["present"][5:])
    tense = "past" if time in NEAR["past"] else "present"
    if g.chance(0.25):
        question, word = g.one((("几点", "what time"), ("什么时候", "when")))
        en = _clause(subject, verb, tense, time.en, ask=True)
        return _ask((f"{subject.zh}{time.zh}{question}{verb.zh}", en), word)
    en = _clause(subject, verb, tense, f"at {hour.en} o'clock", time.en)
    return _say((f"{subject.zh}{time.zh}{hour.zh}点{verb.zh}", en))


@construction(560)
def will(g: Draw) -> Pair:
    action = _deed(g, "w", "a a num this that")
    return _tell(g, "will will will-not", action, _time(g, "will", action))


@construction(800)
def now(g: Draw) -> Pair:
    action = _act(g) if g.chance(0.45) else _deed(g, "p", "a a this that")
    return _tell(g, "now now still", action, place=action.place if g.chance(0.4) else None, ask=0.15)


STATES_OF_DRESS = """
穿着 wear: cloth
戴着 wear: worn
拿着 hold: small book
"""
POSTURES = """
坐 sit: 椅子上 沙发上 床上 树下面 窗户旁边
站 stand: 门后面 树下面 窗户旁边 学校后面
躺 lie: 床上 沙发上 树下面
"""


@construction(600)
def wearing(g: Draw) -> Pair:
    """着: what one wears or holds, and how and where one sits."""
    subject = _who(g, single=True)
    if g.chance(0.7):
        state, kinds = g.one(_rows(STATES_OF_DRESS))
        verb, thing = _verb(state.zh, state.en), _thing(g, kinds, "a", 0.5)
        en = _clause(subject, verb, "now", thing.object)
        return _say((f"{subject.zh}{verb.zh}{thing.zh}", en))
    posture, places = g.one(_rows(POSTURES))
    spot = g.one([spot for spot, _ in SPOT if spot.zh in places.split()])
    en = _clause(subject, _verb("", posture.en), "now", spot.en)
    return _say((f"{subject.zh}在{spot.zh}{posture.zh}着", en))


@construction(700)
def ever(g: Draw) -> Pair:
    """去过, 没看过, 从来没...过."""
    place = g.one(TOWNS + PLACE[:9])
    gone = Action(_verb("去", "be"), _to(place))
    action = g.one((gone, _deed(g, "g", "this that those", 0.1), _deed(g, "x", "bare", 0)))
    return _tell(g, "has has has-not has-never", action, ask=0.2)


@construction(700)
def modal(g: Draw) -> Pair:
    action = _act(g) if g.chance(0.4) else _deed(g, "w", "a a this that num")
    names = g.one(("should should-not must can cannot", "could", "wants wants-not"))
    return _tell(g, names, action, ask=0 if names.startswith("should") else 0.3)


SKILLS = "游泳 swim; 跳舞 dance; 唱歌 sing; 做饭 cook; 下棋 play chess; 弹钢琴 play the piano"


@construction(400)
def skill(g: Draw) -> Pair:
    """Skills and languages; learning and teaching them; for how long."""
    subject, tongue, mode = _who(g), g.one(TONGUES), g.random()
    speak = _verb("说" + tongue.zh, f"speak {tongue.en}")
    if mode < 0.5:
        able = Action(g.one([speak, speak, *_verbs(SKILLS)]), NONE)
        return _tell(g, "knows knows knows-not", able, ask=0.2)
    if mode < 0.75:
        pupil = _other(g, subject)
        object_ = Phrase(pupil.zh + tongue.zh, "", "is", object=f"{pupil.object} {tongue.en}")
        name = g.word("does will")
        time = _time(g, ASPECT[name].tense)
        return _say(_event(subject, name, Action(_verb("教", "teach"), object_), time))
    years = g.one(COUNTS[:9])
    object_ = Phrase(f"{years.zh}年{tongue.zh}", "", "is", object=f"{tongue.en} for {years.en} years")
    return _say(_event(subject, "did", Action(_verb("学", "study"), object_)))


@construction(850)
def go(g: Draw) -> Pair:
    """去: where, by what, and to do what."""
    subject, action, mode = _who(g), _act(g), g.random()
    name = g.word("did will does")
    tense = ASPECT[name].tense
    place = g.one(PLACE if tense == "present" else PLACE + TOWNS)
    if mode < 0.42:
        ride = g.one(VEHICLES[3:] if tense == "present" else VEHICLES[:3] + VEHICLES)
        place = g.one(TOWNS) if ride in VEHICLES[:3] else SITES[g.word(ABOUT_TOWN)]
        verb = _verb(f"坐{ride.zh}去{place.zh}", f"go {place.to} by {ride.en}")
    elif mode < 0.67 and action.place:
        verb = _verb(f"去{action.place.zh}{action.zh()}", f"go {action.place.to} to {action.en('base')}")
    else:
        name = g.one((name, "did-not", "will-not")) if g.chance(0.4) else name
        return _say(_event(subject, name, Action(GO, _to(place)), _time(g, ASPECT[name].tense)))
    return _say(_event(subject, name, Action(verb, NONE), _time(g, tense)))


@construction(1000)
def compare(g: Draw) -> Pair:
    """比, 没有...那么, 和...一样."""
    noun, look = _trait(g)
    if g.chance(0.45):
        left = _who(g, single=True)
        right, look = _other(g, left), g.one(TRAITS["name"] + MOODS["name"][:3])
    elif noun.kind in ("pet", "wild") and g.chance(0.3):
        others = [animal for animal in NOUN["pet"] + NOUN["wild"] if animal != noun]
        left, right = _noun_phrase(g, noun, "bare", 0), _noun_phrase(g, g.one(others), "bare", 0)
        look = g.one([look for look in TRAITS["wild"] if look in TRAITS["pet"]])
    elif g.chance(0.1):
        left = g.one([Phrase(tongue.zh, tongue.en, "is") for tongue in TONGUES])
        right = g.one([Phrase(t.zh, t.en, "is", object=t.en) for t in TONGUES if t.zh != left.zh])
        look = g.one(TRAITS["language"])
    else:
        words = "this/that" if noun.unit else g.word("this/that my/this these/those")
        words = words.replace("my", "that") if noun.kind == "wild" else words
        left, right = (_noun_phrase(g, noun, word, 0) for word in words.split("/"))
    how = g.word("比 比 得多 一点 一样 没有")
    if how in ("一样", "没有"):
        zh = f"没有{right.zh}那么{look.zh}" if how == "没有" else f"和{right.zh}一样{look.zh}"
        en = _clause(left, IS, "present", f"as {look.en} as {right.object}", no=how == "没有")
        return _say((left.zh + zh, en))
    tail, degree = {"比": ("", ""), "得多": (how, "much"), "一点": (how, "a little")}[how]
    rest = Term(f"比{right.zh}{look.zh}{tail}", _join(degree, look.comparative, "than", right.object))
    return _maybe(g, left, IS_SO, rest, ask=0 if tail else 0.2, no=0)


@construction(1050)
def ba(g: Draw) -> Pair:
    """把: what one did with a thing, where one put it, to whom one gave it."""
    subject, mode, determiners = _who(g), g.random(), "the the this that my"
    time, other, place = _time(g, "past", _act(g), 0.3), _other(g, subject), g.one(PLACE)
    if mode < 0.5:
        verb, kinds = g.one(RESULT)
        if verb.base in ("eat", "drink"):
            determiners = "the this that"
        zh, to = verb.zh, ""
    elif mode < 0.75:
        spot, kinds = g.one(PUT)
        verb, zh, to = _verb("", "put"), f"放在{spot.zh}了", spot.en
    elif mode < 0.9:
        verb, kinds = g.one(_verbs("送给 give; 借给 lend; 卖给 sell")), "small book bike gadget bag worn"
        zh, to = f"{verb.zh}了{other.zh}", f"to {other.object}"
    else:
        verb, kinds = _verb("", "leave"), "small gadget book worn"
        zh, to = f"忘在{place.zh}了", place.at
    thing = _thing(g, kinds, determiners, 0.1)
    en = _clause(subject, verb, "past", thing.object, to, time.en)
    return _say((f"{subject.zh}{time.zh}把{thing.zh}{zh}", en))


REQUESTS = """
打开 open: door bag
关上 close: door
给我 give: small book drink fruit letter
带来 bring: small book gadget
拿走 take away: small book bag
洗一下 wash: cloth ware fruit
修一下 repair: bike gadget car
"""


@construction(300)
def please(g: Draw) -> Pair:
    action, (spot, kinds), (verb, targets) = _act(g), g.one(PUT), g.one(_rows(REQUESTS))
    if action.place and g.chance(0.25):
        zh, place = f"请不要在{action.place.zh}{action.zh()}", action.place.at
        return _say((zh, f"please do not {action.en('base')} {place}"))
    if g.chance(0.4):
        thing = _thing(g, kinds, "the this that my", 0.1)
        return _say((f"请把{thing.zh}放在{spot.zh}", f"please put {thing.object} {spot.en}"))
    thing = _thing(g, targets, "the the this that", 0.1)
    to = "to me" if verb.en == "give" else ""
    return _say((f"请把{thing.zh}{verb.zh}", _join("please", verb.en, thing.object, to)))


@construction(330)
def give(g: Draw) -> Pair:
    subject = _who(g)
    other = _other(g, subject)
    thing = _thing(g, "small book fruit plant cloth worn gadget 猫 狗", "a a a num")
    gift = Phrase(other.zh + thing.zh, "", "is", object=f"{other.object} {thing.object}")
    return _say(_event(subject, "did", Action(_verb("送", "give"), gift), _time(g, "past", None, 0.6)))


@construction(800)
def there_is(g: Draw) -> Pair:
    spot, kinds = g.one(SPOT)
    noun = _noun(g, kinds)
    if g.chance(0.25):
        there, ask = THERE_IS if noun.mass else THERE_ARE, g.chance(0.4)
        zh, en = f"{spot.zh}{'' if ask else '没'}有{noun.zh}", f"{'any' if ask else 'no'} {noun.bare()}"
    else:
        thing, ask = _noun_phrase(g, noun, "a a num"), g.chance(0.1)
        there = THERE_IS if thing.be == "is" else THERE_ARE
        zh, en = f"{spot.zh}有{thing.zh}", thing.en
    sides = zh, _clause(there, IS, "present", en, spot.en, ask=ask)
    return _ask(sides) if ask else _say(sides)


@construction(430)
def is_at(g: Draw) -> Pair:
    if g.chance(0.5):
        spot, kinds = g.one(SPOT)
        return _maybe(g, _thing(g, kinds, "my my this that those", 0.1), IS_AT, spot)
    place = g.one([HOME, *PLACE, *TOWNS])
    time = _time(g, "past", _act(g), 0.4)
    return _maybe(g, _who(g), IS_AT, Term(place.zh, place.at), time, no=0 if time.zh else 0.2)


@construction(320)
def where_and_when(g: Draw) -> Pair:
    subject, mode = _who(g), g.random()
    zh, word = g.one((("哪里", "where"), ("什么时候", "when")))
    if mode < 0.2:
        return _ask((f"{subject.zh}住在哪里", _clause(subject, LIVE, "present", ask=True)), "where")
    if mode < 0.4:
        subject = _thing(g, "small book gadget pet bike worn", "my", 0.1) if g.chance(0.7) else subject
        return _ask((f"{subject.zh}在哪里", _clause(subject, IS, "present", ask=True)), "where")
    if mode < 0.6:
        place = g.one(TOWNS + PLACE)
        plan = _clause(subject, _verb("", "plan to go"), "present", place.to, ask=True)
        return _ask((f"{subject.zh}打算什么时候去{place.zh}", plan), "when")
    action = _deed(g, "d l", "this that", 0.1)
    asked = f"{subject.zh}是{'在' if word == 'where' else ''}{zh}{action.zh()}的"
    return _ask((asked, _clause(subject, action.verb, "past", action.object.object, ask=True)), word)


@construction(270)
def what(g: Draw) -> Pair:
    verb = g.one(_verbs("吃 eat; 喝 drink; 买 buy; 找 look for; 写 write; 画 draw; 做 do"))
    action, name = Action(verb, Phrase("什么", "", "is"), daily=True), g.word("now now did did will wants")
    tense = ASPECT[name].tense
    time = _time(g, tense, action) if tense in NEAR else NOTHING
    return _ask(_event(_who(g), name, action, time, ask=True), "what")


@construction(320)
def who(g: Draw) -> Pair:
    """谁, as a subject and as an owner."""
    mode, noun = g.random(), _noun(g, OWNED)
    zh, this = g.one((("这", "this"), ("那", "that")))
    if mode < 0.3:
        action = _act(g)
        place = action.place if g.chance(0.5) else None
        return _ask(_event(NOBODY, "now", action, place=place), particle="")
    if mode < 0.6:
        action = _deed(g, "d l", "this that those", 0.1)
        return _ask(_event(NOBODY, "did", action, _time(g, "past", action, 0.4)), particle="")
    if mode < 0.75:
        thing = _noun_phrase(g, noun, "a num")
        return _ask(_fact(NOBODY, HAVE, Term(thing.zh, thing.object)), particle="")
    if mode < 0.85:
        man = _noun(g, "man")
        return _ask((f"{zh}{man.measure}{man.zh}是谁", f"is {this} {man.en}"), "who")
    one = noun if not noun.unit else _noun(g, "pet book car")
    return _ask((f"{zh}是谁的{one.zh}", f"{one.en} is {this}"), "whose")


@construction(320)
def why_and_how(g: Draw) -> Pair:
    subject, action, mode = _who(g), _act(g), g.random()
    if mode < 0.3:
        what = _thing(g, "animal fruit drink book car", "bare this that", 0)
        zh = f"{subject.zh}为什么喜欢{what.zh}"
        return _ask((zh, _clause(subject, LIKE, "present", what.object, ask=True)), "why")
    if mode < 0.5:
        mood = g.one(MOODS["name"])
        so = Term(f"为什么这么{mood.zh}", f"so {mood.en}")
        return _ask(_fact(subject, IS_SO, so, ask=True), "why")
    if mode < 0.75:
        time = _time(g, "past", action)
        en = _clause(subject, action.verb, "past", time.en, no=True, ask=True)
        return _ask((f"{subject.zh}{time.zh}为什么没{action.zh()}", en), "why")
    place, name = g.one(PLACE), g.word("does will")
    time, mark = g.one(NEAR[ASPECT[name].tense][:3]), ASPECT[name].before
    en = _clause(subject, GO, ASPECT[name].tense, place.to, time.en, ask=True)
    return _ask((f"{subject.zh}{time.zh}{mark}怎么去{place.zh}", en), "how")


@construction(320)
def which(g: Draw) -> Pair:
    """哪, 还是, 多少钱."""
    subject, mode = _who(g), g.random()
    noun = _noun(g, "pet wild book show song cloth worn car bike gadget fruit dish drink")
    if mode < 0.35:
        like = _clause(subject, LIKE, "present", ask=True)
        return _ask((f"{subject.zh}喜欢哪{noun.measure}{noun.zh}", like), f"which {noun.one()}")
    if mode < 0.7:
        other = g.one([other for other in NOUN[noun.kind] if other != noun])
        either = Term(f"{noun.zh}还是{other.zh}", f"{noun.bare()} or {other.bare()}")
        return _ask(_fact(subject, LIKE, either, ask=True), particle="")
    thing = _thing(g, "goods fruit car", "this that these those", 0.1)
    return _ask((f"{thing.zh}多少钱", _clause(thing, _verb("", "cost"), "present", ask=True)), "how much")


@construction(520)
def numbers(g: Draw) -> Pair:
    """Ages and prices."""
    if g.chance(0.5):
        subject, age = g.one([*SINGLE, *NAMED]), g.one(COUNTS[4:] + COUNTS[-2:] + ROUND)
        return _say(_fact(subject, IS_SO, Term(f"今年{age.zh}岁", f"{age.en} years old")))
    if g.chance(0.5):
        thing, price = _thing(g, "book small ware dish drink", "this that", 0.1), g.one(ROUND)
    else:
        thing, count = _thing(g, "bike gadget seat cloth furniture", "this that", 0.1), g.one(COUNTS[:8])
        price = Term(f"{count.zh}百", f"{count.en} hundred")
    en = _clause(thing, _verb("", "cost"), "present", f"{price.en} yuan")
    return _say((f"{thing.zh}{price.zh}块钱", en))


def _relative(g: Draw) -> Pair:
    """A clause that says which person: 正在跳舞, 住在北京; who is dancing, who lives in Beijing."""
    one, mode, town = Phrase("", "who", "is"), g.random(), g.one(TOWNS)
    if mode < 0.3:
        action = _act(g)
        return _event(one, "now", action, place=action.place if g.chance(0.3) else None)
    if mode < 0.6:
        verb, kind = g.one((("穿着", "cloth"), ("戴着", "worn")))
        noun = _noun(g, kind)
        hue = g.one(HUES[kind])
        en = _clause(one, _verb("", "wear"), "now", _article(noun.one(hue.en)))
        return f"{verb}一{noun.measure}{hue.attribute}{noun.zh}", en
    if mode < 0.75:
        return _fact(one, LIVE, Term(town.zh, town.at))
    if mode < 0.85:
        tongue = g.one(TONGUES)
        return _event(one, "knows", Action(_verb(f"说{tongue.zh}", f"speak {tongue.en}"), NONE))
    thing = _thing(g, "animal fruit drink book", "bare", 0)
    return _fact(one, LIKE, Term(thing.zh, thing.object))


@construction(620)
def who_clause(g: Draw) -> Pair:
    """穿着一件红色的衬衫的女孩是我的同学."""
    noun, (clause_zh, clause_en) = _noun(g, "boy girl boy girl folk job"), _relative(g)
    that_zh, that = g.one((("", "the"), (f"那{noun.measure}", "that")))
    zh, en = f"{that_zh}{clause_zh}的{noun.zh}", f"{that} {noun.en} {clause_en}"
    subject, mode = Phrase(zh, en, "is", noun.kind, en), g.random()
    if mode < 0.35:
        owner = g.one([*SINGLE, *NAMED])
        family = {"boy": NOUN["brother"][:2], "girl": NOUN["sister"][:2]}.get(noun.kind, [])
        role = g.one(NOUN["mate"] + family)
        return _say(_fact(subject, IS, Term(f"{owner.zh}的{role.zh}", f"{owner.owner} {role.en}")))
    if mode < 0.65:
        look = g.one(TRAITS[noun.kind])
        return _say(_fact(subject, IS_SO, _so(look)))
    verb = g.one((LIKE, _verb("认识", "know")))
    return _maybe(g, _who(g), verb, Term(zh, en), ask=0.1)


LEAVING_A_THING = "buy borrow write read watch draw eat make sell lose find wash repair take"


@construction(640)
def that_clause(g: Draw) -> Pair:
    """我昨天买的书很有趣."""
    subject = _who(g)
    deed = g.one([deed for deed in DEED if deed.verb.base in LEAVING_A_THING.split()])
    verb, noun = deed.verb, _noun(g, deed.kinds)
    time = _time(g, "past", Action(verb, NONE, daily="d" in deed.uses))
    that = g.chance(0.3)
    zh = f"{subject.zh}{time.zh}{verb.zh}的{f'那{noun.measure}' if that else ''}{noun.zh}"
    head = f"that {noun.one()}" if that else f"the {noun.en}"
    en = f"{head} that {_clause(subject, verb, 'past', time.en)}"
    be = "are" if noun.unit and not that and not noun.mass else "is"
    thing, looks = Phrase(zh, en, be, noun.kind, en), TRAITS.get(noun.kind)
    if noun.kind in HUES and g.chance(0.3):
        hue = g.one(HUES[noun.kind])
        return _say(_fact(thing, IS, Term(hue.attribute, hue.en)))
    if looks and g.chance(0.7):
        look = g.one(looks)
        return _say(_fact(thing, IS_SO, _so(look)))
    return _maybe(g, _other(g, subject), LIKE, Term(zh, en), ask=0.1)


def _weather(g: Draw, tense: str) -> Pair:
    """昨天下雨了; or 明天下雪, of which English speaks in the present after "if"."""
    sky, time = g.one(_terms(WEATHER)), _time(g, "past" if tense == "past" else "will")
    mark = "了" if tense == "past" else ""
    return f"{time.zh}{sky.zh}{mark}", _clause(SKY, _verb("", sky.en), tense, time.en)


@construction(560)
def because(g: Draw) -> Pair:
    subject, mode, action, place = _who(g, known=True), g.random(), _act(g), g.one(PLACE)
    him = BACK[subject.pronoun]
    if mode < 0.35:
        why, why_en = _fact(subject, IS_SO, _so(g.one(BAD_MOODS)), _time(g, "past", action))
        then, then_en = _event(him, "did-not", action)
    elif mode < 0.6:
        why, why_en = _weather(g, "past")
        then, then_en = _event(subject, "did-not", Action(GO, _to(place)))
    elif mode < 0.75:
        thing = _thing(g, "cloth bike car gadget seat furniture book", "this that these those", 0.1)
        why, why_en = _fact(thing, IS_SO, Term("太贵了", "too expensive"))
        object_ = Phrase("", "", "is", object=BACK[thing.pronoun].object)
        then, then_en = _event(subject, "wants-not", Action(_verb("买", "buy"), object_))
    else:
        thing = _thing(g, "pet book show cloth bike car gadget seat", "this that these those my", 0)
        look = g.one(TRAITS[thing.kind])
        liking, en = _fact(subject, LIKE, Term(thing.zh, thing.object), no=look.zh in UNWELCOME.split())
        why, why_en = _fact(BACK[thing.pronoun], IS_SO, _so(look))
        return _say((f"{liking}，因为{why}", f"{en} because {why_en}"))
    return _say((f"因为{why}，所以{then}", f"because {why_en}, {then_en}"))


ADVICE = """
累: 休息 rest; 上床 go to bed
饿: 吃饭 eat
渴: 喝水 drink water
难过: 听音乐 listen to music
紧张: 散步 take a walk; 休息 rest
生气: 散步 take a walk
"""


@construction(600)
def if_clause(g: Draw) -> Pair:
    subject, mode, action, place = _who(g, known=True), g.random(), _act(g), g.one(PLACE)
    him = BACK[subject.pronoun]
    if mode < 0.45:
        given, given_en = _weather(g, "present")
        if g.chance(0.6):
            action = Action(GO, _to(place))
        then, then_en = _event(subject, "would-not", action)
    elif mode < 0.8:
        (means, means_en), town = g.one((("时间", "time"), ("钱", "money"))), g.one(TOWNS)
        given, given_en = _fact(subject, HAVE, Term(means, means_en))
        if means == "钱":
            action = Action(_verb("买", "buy"), _thing(g, "book cloth car gadget worn bike", "a num"))
        if g.chance(0.4):
            action = Action(GO, _to(town))
        then, then_en = _event(him, "would", action)
    else:
        mood, _, advice = g.one(ADVICE.strip().split("\n")).partition(": ")
        look = next(look for look in MOODS["name"] if look.zh == mood)
        given, given_en = _fact(subject, IS_SO, _so(look))
        then, then_en = _event(him, "ought", Action(g.one(_verbs(advice)), NONE))
    return _say((f"如果{given}，{then}", f"if {given_en}, {then_en}"))


@construction(560)
def although(g: Draw) -> Pair:
    subject, mode, action, place = _who(g, known=True), g.random(), _act(g), g.one(PLACE)
    him, traits = BACK[subject.pronoun], TRAITS["name"]
    if mode < 0.35:
        given, given_en = _fact(subject, IS_SO, _so(g.one(BAD_MOODS)))
        then, then_en = _event(him, "still", action)
    elif mode < 0.65:
        fault = g.one([trait for trait in traits if trait.zh in ("瘦", "懒", "年轻")] + BAD_MOODS[:2])
        given, given_en = _fact(subject, IS_SO, _so(fault))
        good = g.one([trait for trait in traits if trait.zh in ("聪明", "善良", "勇敢", "友好")])
        then, then_en = _fact(him, IS_SO, _so(good))
    elif mode < 0.85:
        thing = _thing(g, "book cloth bike car gadget seat furniture bag", "this that these those my", 0)
        bad = g.one([trait for trait in TRAITS[thing.kind] if trait.zh in UNWELCOME.split()])
        opposite = {"贵": "便宜", "旧": "新", "脏": "干净"}.get(bad.zh)
        welcome = [t for t in TRAITS[thing.kind] if t.zh not in (*UNWELCOME.split(), "大", "小", opposite)]
        given, given_en = _fact(thing, IS_SO, _so(bad))
        then, then_en = _fact(BACK[thing.pronoun], IS_SO, _so(g.one(welcome)))
    else:
        given, given_en = _fact(SKY, IS_SO, g.one(_terms("很冷 cold; 很热 hot")), _time(g, "past", action))
        then, then_en = _event(subject, "did", Action(GO, _to(place)))
    return _say((f"虽然{given}，但是{then}", f"although {given_en}, {then_en}"))


@construction(400)
def while_clause(g: Draw) -> Pair:
    """的时候, 以后."""
    subject, mode, action = _who(g), g.random(), _act(g)
    if mode < 0.5:
        him, time = g.one(PRONOUN), _time(g, "past", action)
        other = _other(g, him)
        zh = f"{him.zh}{time.zh}到家的时候，{other.zh}正在{action.zh()}"
        home = _clause(him, _verb("", "get home"), "past", time.en)
        return _say((zh, f"when {home}, {_clause(other, action.verb, 'then')}"))
    if mode < 0.7:
        sky, (zh, en) = g.one(_terms(WEATHER)), _event(subject, g.word(OFTEN), action)
        return _say((f"{sky.zh}的时候，{zh}", f"when it {sky.en}s, {en}"))
    first, name = g.one(ROUTINE[:8])[0], g.word("does did will")
    tense = ASPECT[name].tense
    time = NEAR[tense][0]
    after = Term(f"{time.zh}{first.zh}以后", _join("after", first.ing, first.tail, time.en))
    return _say(_event(subject, name, action, after))


# ---------------------------------------------------------------------------------------------- the corpus


def _sentences() -> dict[str, list[str]]:
    """Every English sentence with its Chinese, which has no final 。 yet."""
    english: dict[str, str] = {}
    for name, (quota, make) in CONSTRUCTIONS.items():
        g, goal = Draw(f"nmt demo {name}"), len(english) + quota
        for _ in range(quota * 4):
            if len(english) >= goal:
                break
            zh, en = make(g)
            if UNSEEN[0] in zh or UNSEEN[1] in en:
                continue
            if english.setdefault(zh, en) != en:
                raise ValueError(f"the demo grammar reads {zh} as {english[zh]!r} and as {en!r} ({name})")
    chinese: dict[str, list[str]] = {}
    for zh, en in english.items():
        chinese.setdefault(en, []).append(zh)
    return chinese


@cache
def _corpus() -> dict[str, list[Pair]]:
    g, chinese = Draw("nmt demo split"), _sentences()
    order = sorted(chinese, key=lambda _: g.random())
    test, valid, train = order[:HELD_OUT], order[HELD_OUT : 2 * HELD_OUT], order[2 * HELD_OUT :]
    corpus = {}
    for split, sentences in (("train", train), ("valid", valid), ("test", test)):
        # A held-out English keeps one Chinese, so that it counts once.
        kept = None if split == "train" else 1
        found = [(zh, en) for en in sentences for zh in chinese[en][:kept]]
        corpus[split] = [(zh if zh[-1] == "？" or g.chance(0.5) else zh + "。", en) for zh, en in found]
    return corpus


def pairs(split: str) -> list[Pair]:
    """The (Chinese, English) pairs of one split."""
    if split not in SPLITS:
        raise ValueError(f"the demo corpus has no split {split!r}, only {', '.join(SPLITS)}")
    return list(_corpus()[split])
