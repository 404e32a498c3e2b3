"""Function words that say nothing about a text's subject: short lists of our own.

Words of one letter are missing because they are no words to the tokeniser either.
"""

from __future__ import annotations

_ENGLISH = """
about above across after again against all almost alone along already also although always am among an and another any
anybody anyone anything anywhere are aren around as at away be became because become becomes been before behind being
below between beyond both but by can cannot could couldn did didn do does doesn doing don done down during each either
else enough etc even ever every everybody everyone everything everywhere except few for from further had hadn has hasn
have haven having he hence her here hers herself him himself his how however if in indeed instead into is isn it its
itself just last least less let like ll many may maybe me might mine more moreover most much must my myself namely
near neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once one only onto or
other others otherwise ought our ours ourselves out over own per perhaps quite rather re really same several shall she
should shouldn since so some somebody someone something sometimes somewhere still such than that the their theirs them
themselves then there thereby therefore these they this those though through throughout thus to together too toward
towards under unless until up upon us ve very via was wasn we well were weren what whatever when whenever where
whereas whereby wherever whether which while who whoever whole whom whose why will with within without won would
wouldn yet you your yours yourself yourselves
"""

_GERMAN = """
ab aber alle allem allen aller allerdings alles als also am an andere anderem anderen anderer anderes auch auf aus
außer außerdem bei beide beiden beim bereits bevor bin bis bist bzw da dabei dadurch dafür dagegen daher dahin damit
danach daneben dann daran darauf daraus darin darum darunter darüber das dass davon davor dazu daß dein deine deinem
deinen deiner dem demnach den denen denn dennoch der deren derer des deshalb dessen desto deswegen dich die dies diese
dieselbe dieselben diesem diesen dieser dieses dir doch dort du durch dürfen eben ebenso eher ein eine einem einen
einer eines einige einigem einigen einiger einiges einmal entweder er es etc etwa etwas euch euer eure eurem euren
eurer falls fast für gar gegen gegenüber genau gewesen gibt habe haben hat hatte hatten hier hierbei hinter ihm ihn
ihnen ihr ihre ihrem ihren ihrer ihres im immer in indem ins insbesondere irgend ist ja je jede jedem jeden jeder
jedes jedoch jemand jene jenem jenen jener jenes jetzt kann kaum kein keine keinem keinen keiner können könnte könnten
machen man manche manchem manchen mancher mehr mein meine meinem meinen meiner mich mir mit mittels muss musste muß
möchte müssen nach nachdem neben nicht nichts noch nun nur nämlich ob obwohl oder ohne schon sehr sei seien sein seine
seinem seinen seiner seines seit selbst sich sie sind so sobald sofern sogar solch solche solchem solchen solcher soll
sollen sollte sollten sondern sonst soweit sowie sowohl statt trotz trotzdem um und uns unser unsere unserem unseren
unserer unter usw vom von vor wann war waren warum was wegen weil weitere weiteren weiterer weiteres welche welchem
welchen welcher welches wenig wenige wenigen wenn wer werde werden wessen wie wieder wir wird wo wobei wodurch wohl
wollen womit worauf worden worin wurde wurden während wäre wären würde würden zu zudem zum zumal zur zwar zwischen
über überhaupt
"""

STOP_WORDS = {"english": tuple(_ENGLISH.split()), "german": tuple(_GERMAN.split())}
